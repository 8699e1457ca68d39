(* SecAgg on any graph: when "exactly the component sums" is "exactly the sum", and what is learned when no survivors are
   announced (spec/secagg.md, sections 1 and 9). *)
From mathcomp Require Import all_ssreflect all_algebra.
From secagg Require Import Counting Masks SecAggPrivacy.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section Graph.
Variables (G : finZmodType) (N : nat) (nb : rel 'I_N).
Hypothesis nb_sym : symmetric nb.
Variables (U2 U3 C : {set 'I_N}).
Hypothesis sub : U3 \subset U2.

(* What colluders know of their own, and the sum over the honest survivors. *)
Definition own (x : input G N) : {ffun 'I_N -> G} := [ffun i => if i \in C then x i else 0].
Definition only_sum (x : input G N) := (own x, \sum_(i in H U3 C) x i).

(* The honest survivors are connected among themselves. *)
Definition connected := forall i j, i \in H U3 C -> j \in H U3 C -> connect (edge nb U3 C) i j.

Lemma connected_sum (x x' : input G N) : connected -> allowed nb U3 C x = allowed nb U3 C x' <-> only_sum x = only_sum x'.
Proof.
move=> conn; have part i (y : input G N) : i \in H U3 C -> \sum_(j in component nb U3 C i) y j = \sum_(j in H U3 C) y j.
  by move=> iH; apply: eq_bigl => j; rewrite inE; apply/andP/idP => [[] //|jH]; split=> //; exact: conn.
split=> [[o /ffunP s]|[o s]]; congr (_, _); try exact: o.
  case: (set_0Vmem (H U3 C)) => [->|[i iH]]; first by rewrite !big_set0.
  by move: (s i); rewrite !ffunE iH !part.
by apply/ffunP => i; rewrite !ffunE; case: ifP => // iH; rewrite !part.
Qed.

(* The server learns the sum and nothing else exactly when the honest survivors are connected (in a group with more than one
   element). *)
(* Carries SAG-03, UNI-COMPONENTS. *)
Theorem only_the_sum (g : G) : g != 0 -> learns_exactly (view nb U2 U3 C) only_sum <-> connected.
Proof.
move=> g0; have [hid tel] := secagg_exactly G nb_sym C sub; split=> [[hid' _] i j iH jH|conn]; last first.
  split=> [x x' /(connected_sum x x' conn) /hid //|x x' r r' /tel]; exact: (proj1 (connected_sum x x' conn)).
(* otherwise move g from the one component to the other: the sum is the same, and the views differ *)
apply/negPn/negP => ncon.
have [x xE] : exists x : input G N, forall k, x k = 0 by exists [ffun=> 0] => k; rewrite ffunE.
have [x' x'E] : exists x' : input G N, forall k, x' k = (if k == i then g else 0) - (if k == j then g else 0).
  by exists [ffun k => (if k == i then g else 0) - (if k == j then g else 0)] => k; rewrite ffunE.
have nij : j != i by apply: contraNneq ncon => ->; exact: connect0.
have [iC jC] : i \notin C /\ j \notin C by move: iH jH; rewrite !inE => /andP[-> _] /andP[-> _].
have s0 : only_sum x = only_sum x'.
  congr (_, _).
    have ownE (y : input G N) k : own y k = if k \in C then y k else 0 by rewrite ffunE.
    apply/ffunP => k; rewrite !ownE; case: ifP => // kC.
    have ki : (k == i) = false by apply: contraNF iC => /eqP <-.
    have kj : (k == j) = false by apply: contraNF jC => /eqP <-.
    by rewrite xE x'E ki kj subrr.
  rewrite big1 => [|k _]; last exact: xE.
  under eq_bigr do rewrite x'E; rewrite sumrB (bigD1 i) //= eqxx (bigD1 j jH) /= eqxx.
  by rewrite !big1 ?addr0 ?subrr // => k /andP[_ /negPf->].
pose r : secret G N := (0, 0).
have [r' /tel [_ /ffunP /(_ i)]] := hides_view hid' s0 r; rewrite !ffunE iH.
rewrite [X in _ = X]big1 => [|k _]; last exact: xE.
rewrite (bigD1 i) /=; last by rewrite inE iH connect0.
rewrite x'E eqxx eq_sym (negPf nij) subr0 big1 ?addr0 => [/eqP|k /andP[kc /negPf ki]]; first by rewrite (negPf g0).
rewrite x'E ki sub0r; case: eqP => [kj|]; last by rewrite oppr0.
by move: kc; rewrite kj inE (negPf ncon) andbF.
Qed.
End Graph.

Definition complete N : rel 'I_N := fun i j => i != j.
Lemma complete_sym N : symmetric (@complete N). Proof. by move=> i j; rewrite /complete eq_sym. Qed.
Lemma complete_connected N (U3 C : {set 'I_N}) : connected (@complete N) U3 C.
Proof.
move=> i j iH jH; case: (eqVneq i j) => [->|ne]; first exact: connect0.
by apply: connect1; rewrite /edge iH jH /complete ne.
Qed.

(* On the complete graph it is always the sum. *)
(* Carries SAG-24, UNI-COMPONENTS. *)
Corollary complete_graph (G : finZmodType) N (U2 U3 C : {set 'I_N}) : U3 \subset U2 ->
  learns_exactly (view (G := G) (@complete N) U2 U3 C) (only_sum U3 C).
Proof.
have [sym conn] := (@complete_sym N, @complete_connected N U3 C); move=> sub.
case: (pickP (fun g : G => g != 0)) => [g g0|all0]; first by apply/(only_the_sum sym C sub g0).
have one (g h : G) : g = h by move: (all0 g) (all0 h) => /negbFE/eqP-> /negbFE/eqP->.
have same (x x' : input G N) : x = x' by apply/ffunP => i; exact: one.
by split=> [x x' _ v|x x' r r' _]; rewrite (same x x').
Qed.

(* Before the survivors are announced nothing is learned of honest inputs: no self mask is known, even when all masks of pairs
   are. *)
(* Carries SAG-12, UNI-FAILED. *)
Corollary unannounced (G : finZmodType) N (nb : rel 'I_N) (U2 C : {set 'I_N}) : symmetric nb ->
  hides (view (G := G) nb U2 set0 C) (own C).
Proof.
move=> sym x x' same v; apply: secagg_hides => //; first exact: sub0set.
rewrite /allowed; congr (_, _); first exact: same.
by apply/ffunP => i; rewrite !ffunE /H set0D inE.
Qed.
