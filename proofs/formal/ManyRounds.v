(* Many rounds with fresh randomness tell exactly what each of them tells (spec/heterosag.md, section 8; spec/multi-round.md,
   section 5; spec/basa.md, section 6).  Claims UNI-CELLS, UNI-BATCHES, UNI-BASAREUSE. *)
From mathcomp Require Import all_ssreflect all_algebra.
From secagg Require Import Counting SecAggPrivacy SecAggGraph Basa BasaPrivacy BasaVoid.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section Rounds.
(* J rounds; S holds the inputs of all of them, R is the randomness of one. *)
Variables (S : Type) (R : finType) (View F : eqType) (J : nat).
Variables (V : 'I_J -> S -> R -> View) (f : 'I_J -> S -> F).

Definition views (s : S) (r : {ffun 'I_J -> R}) : {ffun 'I_J -> View} := [ffun t => V t s (r t)].
Definition values (s : S) : {ffun 'I_J -> F} := [ffun t => f t s].

(* The rounds are independent: ways multiply. *)
Lemma ways_views s v : ways views s v = (\prod_t ways (V t) s (v t))%N.
Proof.
transitivity #|family (fun t => [pred r | V t s r == v t])|; last by rewrite card_family foldrE big_map big_enum.
apply: eq_card => r; rewrite inE; apply/eqP/familyP => [<- t|all].
  by rewrite !inE ffunE.
by apply/ffunP => t; rewrite ffunE; apply/eqP; have := all t; rewrite inE.
Qed.

(* Carries UNI-CELLS, UNI-BATCHES. *)
Theorem rounds_exactly : (forall t, learns_exactly (V t) (f t)) -> learns_exactly views values.
Proof.
move=> each; split=> [s s' /ffunP same v|s s' r r' /ffunP same].
  by rewrite !ways_views; apply: eq_bigr => t _; apply: (proj1 (each t)); move: (same t); rewrite !ffunE.
by apply/ffunP => t; rewrite !ffunE; apply: (proj2 (each t)) (r t) (r' t) _; move: (same t); rewrite !ffunE.
Qed.
End Rounds.

(* SecAgg on the complete graph, over J rounds: inputs may change from round to round, or not; U2, U3 and C are those of the
   round.  The server learns exactly the sums that were answered, and what colluders know. *)
(* Carries SAG-12, SAG-24, MRA-27, UNI-CELLS, UNI-BATCHES. *)
Theorem secagg_rounds (G : finZmodType) N J (U2 U3 C : 'I_J -> {set 'I_N}) (S : Type) (x : 'I_J -> S -> SecAggPrivacy.input G N) :
  (forall t, U3 t \subset U2 t) ->
  learns_exactly (views (fun t s => SecAggPrivacy.view (@complete N) (U2 t) (U3 t) (C t) (x t s)))
    (values (fun t s => only_sum (U3 t) (C t) (x t s))).
Proof.
move=> sub; apply: rounds_exactly => t; have [hid tel] := complete_graph G (C t) (sub t).
by split=> [s s' same|s s' r r' same]; [exact: hid | exact: tel same].
Qed.

(* BASA over J epochs, in the profile void: their sums and no more are learned, whether updates are new in each epoch or are
   uploaded again.  The positions without an upload are the coalition's, or else an epoch tells nothing (BasaVoid.void_to_come). *)
(* Carries BAA-27, UNI-BASAREUSE. *)
Theorem void_epochs (G : finZmodType) P J (n : 'I_J -> nat) (C : 'I_J -> {set 'I_P}) (S : Type) (v : 'I_J -> S -> BasaPrivacy.input G P) :
  (forall t j, j \notin came P (n t) -> j \in C t) ->
  learns_exactly (views (fun t s => void_view (n t) (C t) (v t s))) (values (fun t s => BasaPrivacy.allowed (came P (n t)) (C t) (v t s))).
Proof.
move=> none; apply: rounds_exactly => t; have [hid tel] := void_one_sum G (none t).
by split=> [s s' same|s s' r r' same]; [exact: hid | exact: tel same].
Qed.

(* The same of closed epochs in the profile settle. *)
(* Carries BAA-27, UNI-BASAREUSE. *)
Theorem settle_epochs (G : finZmodType) P J (A Up C : 'I_J -> {set 'I_P}) (S : Type) (v : 'I_J -> S -> BasaPrivacy.input G P) :
  (forall t, A t \subset Up t) ->
  learns_exactly (views (fun t s => BasaPrivacy.view (A t) (Up t) (C t) (v t s))) (values (fun t s => BasaPrivacy.allowed (A t) (C t) (v t s))).
Proof.
move=> sub; apply: rounds_exactly => t; have [hid tel] := basa_exactly G (C t) (sub t).
by split=> [s s' same|s s' r r' same]; [exact: hid | exact: tel same].
Qed.

(* So updates of an epoch must not be uploaded again: when the honest ones of one sum are those of another and one more, this one
   is learned.  User place t k has the position k of epoch t. *)
(* Carries BAA-27, UNI-BASAREUSE. *)
Theorem reuse_tells (G : finZmodType) P M J (n : 'I_J -> nat) (C : 'I_J -> {set 'I_P}) (place : 'I_J -> 'I_P -> 'I_M) t1 t2 i :
  (forall t j, j \notin came P (n t) -> j \in C t) ->
  (forall u : {ffun 'I_M -> G}, \sum_(k in came P (n t1) :\: C t1) u (place t1 k) = \sum_(k in came P (n t2) :\: C t2) u (place t2 k) + u i) ->
  tells (views (fun t (u : {ffun 'I_M -> G}) => void_view (n t) (C t) [ffun k => u (place t k)])) (fun u => u i).
Proof.
move=> none more u u' r r' same; have [_ tel] := void_epochs (fun t (u : {ffun 'I_M -> G}) => [ffun k => u (place t k)]) none.
have /ffunP sums := tel _ _ _ _ same.
have sum t : \sum_(k in came P (n t) :\: C t) u (place t k) = \sum_(k in came P (n t) :\: C t) u' (place t k).
  have := sums t; rewrite !ffunE => -[_]; under eq_bigr do rewrite ffunE; by under [RHS]eq_bigr do rewrite ffunE.
by apply: (@addrI _ (\sum_(k in came P (n t2) :\: C t2) u (place t2 k))); rewrite -more sum more sum.
Qed.
