(* Many rounds with fresh randomness tell exactly what each of them tells (spec/heterosag.md, section 8; spec/multi-round.md,
   section 5).  Claims UNI-CELLS, UNI-BATCHES. *)
From mathcomp Require Import all_ssreflect all_algebra.
From secagg Require Import Counting SecAggPrivacy SecAggGraph.
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
Theorem secagg_rounds (G : finZmodType) N J (U2 U3 C : 'I_J -> {set 'I_N}) (S : Type) (x : 'I_J -> S -> input G N) :
  (forall t, U3 t \subset U2 t) ->
  learns_exactly (views (fun t s => view (@complete N) (U2 t) (U3 t) (C t) (x t s)))
    (values (fun t s => only_sum (U3 t) (C t) (x t s))).
Proof.
move=> sub; apply: rounds_exactly => t; have [hid tel] := complete_graph G (C t) (sub t).
by split=> [s s' same|s s' r r' same]; [exact: hid | exact: tel same].
Qed.
