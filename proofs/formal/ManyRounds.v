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

(* The converse, for two epochs. *)
Section Reuse.
(* Two epochs of the same updates u, those of the users in D collude; user place t k has the position k of epoch t. *)
Variables (G : finZmodType) (P M : nat) (n : 'I_2 -> nat) (D : {set 'I_M}) (place : 'I_2 -> 'I_P -> 'I_M).
Hypotheses (place_inj : forall t, injective (place t)).
Let C t := [set k | place t k \in D].
Hypothesis none : forall t j, j \notin came P (n t) -> j \in C t.
Local Notation epoch := (fun t (u : {ffun 'I_M -> G}) => void_view (n t) (C t) [ffun k => u (place t k)]).

(* The honest users of the sum of an epoch. *)
Definition honest t : {set 'I_M} := [set place t k | k in came P (n t) :\: C t].

Lemma honest_sum t (u : {ffun 'I_M -> G}) : \sum_(k in came P (n t) :\: C t) [ffun k => u (place t k)] k = \sum_(i in honest t) u i.
Proof. by rewrite big_imset /=; [apply: eq_bigr => k _; rewrite ffunE | move=> k l _ _; exact: place_inj]. Qed.

Lemma honest_D t i : i \in honest t -> i \notin D.
Proof. by case/imsetP => k; rewrite !inE => /andP[kD _] ->. Qed.

Lemma known (u u' : {ffun 'I_M -> G}) : (forall i, i \in D -> u i = u' i) -> (forall t, \sum_(i in honest t) u i = \sum_(i in honest t) u' i) ->
  values (fun t (u : {ffun 'I_M -> G}) => BasaPrivacy.allowed (came P (n t)) (C t) [ffun k => u (place t k)]) u =
  values (fun t (u : {ffun 'I_M -> G}) => BasaPrivacy.allowed (came P (n t)) (C t) [ffun k => u (place t k)]) u'.
Proof.
move=> own sums; apply/ffunP => t; rewrite !ffunE /BasaPrivacy.allowed !honest_sum sums; congr (_, _).
by apply/ffunP => k; rewrite !ffunE; case: ifP => //; rewrite inE => /own.
Qed.

(* What changes no sum and no colluder's update is not learned. *)
Lemma blind i (e : {ffun 'I_M -> G}) : (forall k, k \in D -> e k = 0) -> (forall t, \sum_(k in honest t) e k = 0) ->
  tells (views epoch) (fun u => u i) -> e i = 0.
Proof.
move=> own sums tel; have [hid _] := void_epochs (fun t (u : {ffun 'I_M -> G}) => [ffun k => u (place t k)]) none.
have z0 k : (0 : {ffun 'I_M -> G}) k = 0 by rewrite ffunE.
have same := @known e 0 (fun k kD => etrans (own k kD) (esym (z0 k))) (fun t => etrans (sums t) (esym (big1 _ _ _ (fun k _ => z0 k)))).
pose r : {ffun 'I_2 -> {ffun 'I_P * 'I_P -> G}} := [ffun=> [ffun=> 0]].
have [r' e1] := hides_view hid same r; by have := tel _ _ _ _ e1; rewrite ffunE.
Qed.

Hypothesis G_gt1 : exists g : G, g != 0.

(* So an update of an honest user is learned exactly when it is alone in the sum of an epoch, or alone in what one sum has more than
   the other. *)
(* Carries BAA-27, UNI-BASAREUSE. *)
Theorem reuse_iff i : i \notin D -> tells (views epoch) (fun u => u i) <->
  exists t, honest t = [set i] \/ exists t', i \notin honest t' /\ honest t = i |: honest t'.
Proof.
move=> iD; split=> [tel|[t alone] u u' r r' same]; last first.
  have [_ /(_ _ _ _ _ same) /ffunP sums] := void_epochs (fun t (u : {ffun 'I_M -> G}) => [ffun k => u (place t k)]) none.
  have {}sums s : \sum_(k in honest s) u k = \sum_(k in honest s) u' k.
    by have := sums s; rewrite !ffunE /BasaPrivacy.allowed !honest_sum => -[].
  case: alone => [one|[t' [it' more]]]; first by have := sums t; rewrite one !big_set1.
  by have := sums t; rewrite more !big_setU1 //= sums => /addIr.
have [g g0] := G_gt1.
pose e j : {ffun 'I_M -> G} := [ffun k => if k == j then g else 0].
have eE j k : e j k = if k == j then g else 0 by rewrite ffunE.
have sum_e j t : \sum_(k in honest t) e j k = if j \in honest t then g else 0.
  case: ifP => jt; last by rewrite big1 // => k kt; rewrite eE; case: eqP => // kj; rewrite -kj kt in jt.
  by rewrite (bigD1 j) //= eE eqxx big1 ?addr0 // => k /andP[_ /negPf kj]; rewrite eE kj.
have eD j k : k \in D -> j \notin D -> e j k = 0 by move=> kD jD; rewrite eE; case: eqP => // kj; rewrite -kj kD in jD.
have two j (S : {set 'I_M}) : S != [set j] -> j \in S -> exists2 k, k \in S & k != j.
  move=> Sj jS; apply/exists_inP; apply: contraNT Sj => /exists_inPn all; apply/eqP/setP => l; rewrite inE.
  by apply/idP/eqP => [lS|-> //]; apply/eqP; rewrite -[_ == _]negbK; exact: all.
have addE (u v : {ffun 'I_M -> G}) k : (u + v) k = u k + v k by rewrite ffunE.
have oppE (u : {ffun 'I_M -> G}) k : (- u) k = - u k by rewrite ffunE.
have sumD t (u v : {ffun 'I_M -> G}) : \sum_(k in honest t) (u + v) k = \sum_(k in honest t) u k + \sum_(k in honest t) v k.
  by rewrite -big_split; apply: eq_bigr => k _; exact: addE.
have sumN t (u : {ffun 'I_M -> G}) : \sum_(k in honest t) (- u) k = - \sum_(k in honest t) u k.
  by rewrite -sumrN; apply: eq_bigr => k _; exact: oppE.
have either (s t : 'I_2) : s = t \/ s = t + 1.
  by move: s t => [[|[|s]] ls] [[|[|t]] lt] //; [left|right|right|left]; apply: val_inj.
have seen (u : {ffun 'I_M -> G}) : (forall k, k \in D -> u k = 0) -> forall t, \sum_(k in honest t) u k = 0 -> \sum_(k in honest (t + 1)) u k = 0 -> u i = 0.
  by move=> own t s0 s1; apply: (blind own _ tel) => s; case: (either s t) => ->.
pose b := [exists t, (honest t == [set i]) || [exists t', (i \notin honest t') && (honest t == i |: honest t')]].
have [/existsP[t /orP[/eqP one|/existsP[t' /andP[it' /eqP more]]]]|] := boolP b.
- by exists t; left.
- by exists t; right; exists t'.
rewrite negb_exists => /forallP no; case/eqP: g0.
have one t : honest t != [set i] by have := no t; rewrite negb_or => /andP[].
have more t t' : i \notin honest t' -> honest t != i |: honest t'.
  by move=> it'; have := no t; rewrite negb_or => /andP[_]; rewrite negb_exists => /forallP/(_ t'); rewrite it'.
have at_i j : j != i -> e j i = 0 by rewrite eE eq_sym => /negPf ->.
have -> : g = e i i by rewrite eE eqxx.
case: (pickP [pred t | (i \in honest t) && (i \notin honest (t + 1))]) => [t /= /andP[it it1]|same].
  have [k kt ki] := two i (honest t) (one t) it.
  have [/exists_inP [k' k't /andP[k'i k't1]]|] := boolP [exists k' in honest t, (k' != i) && (k' \notin honest (t + 1))].
    suff : (e i - e k') i = 0 by rewrite addE oppE (at_i _ k'i) subr0.
    apply: (seen _ _ t) => [l lD||].
    - by rewrite addE oppE !eD ?subr0 // (honest_D k't).
    - by rewrite sumD sumN !sum_e it k't subrr.
    - by rewrite sumD sumN !sum_e (negPf it1) (negPf k't1) subrr.
  rewrite negb_exists_in => /forall_inP sub.
  have in1 l : l \in honest t -> l != i -> l \in honest (t + 1) by move=> /sub; rewrite negb_and !negbK => /orP[->|].
  have [m m1 mt] : exists2 m, m \in honest (t + 1) & m \notin honest t.
    apply/subsetPn; apply: contra (more t (t + 1) it1) => /subsetP sub1; apply/eqP/setP => l; rewrite !inE.
    by apply/idP/orP => [lt|[/eqP ->|/sub1]] //; case: (eqVneq l i) => [|li]; [left | right; exact: in1].
  have mi : m != i by apply: contraNneq mt => ->.
  suff : (e i - e k + e m) i = 0 by rewrite !addE oppE (at_i _ ki) (at_i _ mi) subr0 addr0.
  apply: (seen _ _ t) => [l lD||].
  - by rewrite !addE oppE !eD ?subr0 ?addr0 ?(honest_D kt) ?(honest_D m1).
  - by rewrite !sumD sumN !sum_e it kt (negPf mt) subrr add0r.
  - by rewrite !sumD sumN !sum_e (negPf it1) (in1 _ kt ki) m1 sub0r addNr.
have all t : i \in honest t = (i \in honest 0).
  have imp s : i \in honest s -> i \in honest (s + 1) by move=> si; have := same s; rewrite /= si /= => /negbT; rewrite negbK.
  have back s : i \in honest (s + 1) -> i \in honest s by move=> /imp; rewrite -addrA (_ : 1 + 1 = 0 :> 'I_2) ?addr0 //; exact: val_inj.
  by case: (either t 0) => ->; rewrite ?add0r //; apply/idP/idP => [|/imp]; rewrite ?add0r // -{1}[1]add0r => /back.
case: (boolP (i \in honest 0)) => [i0|i0]; last first.
  by apply: (seen _ _ 0) => [l lD||]; rewrite ?eD // sum_e all (negPf i0).
have i1 : i \in honest (0 + 1) by rewrite all.
have [k k0 ki] := two i _ (one 0) i0; have [l l1 li] := two i _ (one (0 + 1)) i1.
case: (boolP (k \in honest (0 + 1))) => k1.
  suff : (e i - e k) i = 0 by rewrite addE oppE (at_i _ ki) subr0.
  apply: (seen _ _ 0) => [m mD||].
  - by rewrite addE oppE !eD ?subr0 // (honest_D k0).
  - by rewrite sumD sumN !sum_e i0 k0 subrr.
  - by rewrite sumD sumN !sum_e i1 k1 subrr.
case: (boolP (l \in honest 0)) => l0.
  suff : (e i - e l) i = 0 by rewrite addE oppE (at_i _ li) subr0.
  apply: (seen _ _ 0) => [m mD||].
  - by rewrite addE oppE !eD ?subr0 // (honest_D l0).
  - by rewrite sumD sumN !sum_e i0 l0 subrr.
  - by rewrite sumD sumN !sum_e i1 l1 subrr.
suff : (e i - e k - e l) i = 0 by rewrite !addE !oppE (at_i _ ki) (at_i _ li) !subr0.
apply: (seen _ _ 0) => [m mD||].
- by rewrite !addE !oppE !eD ?subr0 ?(honest_D k0) ?(honest_D l1).
- by rewrite !sumD !sumN !sum_e i0 k0 (negPf l0) subrr subr0.
- by rewrite !sumD !sumN !sum_e i1 (negPf k1) l1 subr0 subrr.
Qed.

(* So when updates are new, so that no user is in both sums, an update is learned only when it is alone in a sum. *)
(* Carries BAA-27, UNI-BASAREUSE. *)
Corollary reuse_new i : i \notin D -> (forall t t', t != t' -> [disjoint honest t & honest t']) ->
  tells (views epoch) (fun u => u i) <-> exists t, honest t = [set i].
Proof.
move=> iD new; rewrite reuse_iff //; split=> [[t [one|[t' [it' more]]]]|[t one]]; [by exists t | | by exists t; left].
exists t; rewrite more; case: (eqVneq t t') => [e|/new dis]; first by move: it'; rewrite -e more setU11.
rewrite (_ : honest t' = set0) ?setU0 //; apply/eqP; rewrite -subset0 -(disjoint_setI0 dis) subsetI subxx andbT.
by rewrite more subsetUr.
Qed.

(* And the server alone learns none, with two positions or more. *)
(* Carries BAA-27, UNI-BASAREUSE. *)
Corollary reuse_alone i : D = set0 -> (1 < P)%N -> ~ tells (views epoch) (fun u => u i).
Proof.
move=> D0 P1; have card t : #|honest t| = P.
  rewrite /honest card_imset //; rewrite (_ : _ :\: _ = setT) ?cardsT ?card_ord //; apply/setP => k; rewrite !inE D0 inE /=.
  by apply: contraT => kn; have := none (t := t) (j := k); rewrite !inE D0 inE => /(_ kn).
rewrite reuse_iff ?D0 ?inE // => -[t [one|[t' [it' more]]]]; first by have := card t; rewrite one cards1 => e; rewrite -e in P1.
by have := card t; rewrite more cardsU1 it' card => /eqP; rewrite add1n eqn_leq ltnn.
Qed.
End Reuse.

(* With one colluder it can be: here of three positions, in the second epoch the colluder has the one that a user had before. *)
Section Colluder.
Variable G : finZmodType.
Definition seat (t : 'I_2) (k : 'I_3) : 'I_4 := if (t == 1) && (k == 2%N :> nat) then ord_max else widen_ord (leqnSn 3) k.

(* Carries BAA-27, UNI-BASAREUSE. *)
Theorem reuse_colluder : tells (views (fun t (u : {ffun 'I_4 -> G}) =>
    void_view 3 [set k | seat t k \in [set ord_max]] [ffun k => u (seat t k)])) (fun u => u (widen_ord (leqnSn 3) ord_max)).
Proof.
apply: (@reuse_tells G 3 4 2 (fun=> 3%N) _ seat 0 1) => [t j|u]; first by rewrite !inE ltn_ord.
have all t (f : 'I_3 -> G) : \sum_(k in came 3 3 :\: [set k | seat t k \in [set ord_max]]) f k =
    \sum_(k < 3) if seat t k == ord_max then 0 else f k.
  by rewrite big_mkcond /=; apply: eq_bigr => k _; rewrite !inE ltn_ord andbT; case: eqP.
by rewrite !all !big_ord_recr !big_ord0 /= !add0r !addr0.
Qed.
End Colluder.
