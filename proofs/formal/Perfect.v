(* HeteroSAg's matrices (spec/heterosag.md, section 4): no matrix is more robust than that of a perfect one-factorisation.
   Claim UNI-P1F. *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory. Local Open Scope ring_scope.

Section Matrix.
(* Z segments and Z subgroups; partner l a shares a cell with a in segment l, and is a itself when a is alone. *)
Variables (Z : nat) (partner : 'I_Z -> 'I_Z -> 'I_Z).
Definition cell l a := [set a; partner l a].
Definition decodable l (A : {set 'I_Z}) := \bigcup_(a | cell l a \subset A) cell l a == A.
Definition rows A := #|[set l | decodable l A]|.
Definition robustness : rat := 1 - (\max_(A : {set 'I_Z} | (A != set0) && (A != setT)) rows A)%:R / Z%:R.

(* In each segment the subgroups are parted into cells of one or two; each subgroup is alone in exactly one segment, and each
   two share a cell in exactly one. *)
Hypothesis paired : forall l, involutive (partner l).
Hypothesis once : forall a b, exists! l, partner l a = b.

Lemma decodableP l (A : {set 'I_Z}) : reflect (forall a, a \in A -> partner l a \in A) (decodable l A).
Proof.
apply: (iffP eqP) => [cov a|closed].
  rewrite -{1}cov => /bigcupP[b bA]; rewrite !inE => /orP[]/eqP->; apply: (subsetP bA); rewrite !inE ?paired ?eqxx ?orbT //.
apply/setP => a; apply/bigcupP/idP => [[b /subsetP bA /bA]//|aA]; exists a; last by rewrite !inE eqxx.
by apply/subsetP => b; rewrite !inE => /orP[]/eqP-> //; exact: closed.
Qed.

(* A single subgroup is seen in the segment in which it is alone. *)
Lemma alone a : exists2 l, decodable l [set a] & partner l a = a.
Proof. by have [l [la _]] := once a a; exists l => //; apply/decodableP => b; rewrite !inE => /eqP ->; rewrite la. Qed.

(* With an even number of subgroups, the number of those that are alone in a segment is even. *)
Lemma alone_parity l : odd #|[set a | partner l a == a]| = odd Z.
Proof.
set E := [set a | _]; have -> : odd Z = odd (#|E| + #|setT :\: E|) by rewrite -[in LHS](card_ord Z) -cardsT -(cardsID E setT) setTI.
rewrite oddD; suff -> : odd #|setT :\: E| = false by rewrite addbF.
rewrite -(cardsID [set a : 'I_Z | (a < partner l a)%N]) oddD.
set B := _ :&: _; set B' := _ :\: _; suff -> : B' = [set partner l a | a in B].
  by rewrite card_imset ?addbb //; exact: (can_inj (paired l)).
apply/setP => a; rewrite !inE; apply/andP/imsetP => [[nlt /andP[ne _]]|[b]].
  exists (partner l a); rewrite ?paired // !inE paired eq_sym ne /= ltn_neqAle leqNgt nlt andbT.
  by rewrite (inj_eq val_inj) ne.
move=> + ->; rewrite !inE paired andbT => /andP[ne lt]; by rewrite eq_sym ne -leqNgt ltnW.
Qed.

Lemma two_seen : ~~ odd Z -> (2 < Z)%N -> exists A : {set 'I_Z}, [&& A != set0, A != setT & (2 <= rows A)%N].
Proof.
move=> even Z2; have Z0 : (0 < Z)%N by exact: ltn_trans Z2.
pose a := Ordinal Z0; have [l _ la] := alone a.
have [b ba lb] : exists2 b, b != a & partner l b = b.
  have : (1 < #|[set b | partner l b == b]|)%N.
    have := alone_parity l; rewrite (negPf even); case E: #|_| => [|[|k]] // _.
    by have := card0_eq E a; rewrite inE la eqxx.
  rewrite (cardsD1 a) inE la eqxx add1n ltnS card_gt0 => /set0Pn[b]; rewrite !inE => /andP[ba /eqP lb]; by exists b.
have [k [ka _]] := once a b; exists [set a; b]; apply/and3P; split.
- by apply/set0Pn; exists a; rewrite !inE eqxx.
- by apply: contraTneq Z2 => full; rewrite -[Z]card_ord -cardsT -full cards2 eq_sym ba.
have lk : l != k by apply: contraNneq ba => e; rewrite -ka -e la.
have kb : partner k b = a by rewrite -ka paired.
have -> : 2%N = #|[set l; k]| by rewrite cards2 lk.
apply/subset_leq_card/subsetP => r; rewrite !inE => /orP[]/eqP->; apply/decodableP => c;
  rewrite !inE => /orP[]/eqP->; by rewrite ?la ?lb ?ka ?kb eqxx ?orbT.
Qed.

(* Carries HSA-11, UNI-P1F. *)
Theorem perfect_is_best : (1 < Z)%N -> robustness <= (if odd Z || (Z == 2)%N then Z%:R - 1 else Z%:R - 2%:R) / Z%:R.
Proof.
move=> Z1; have Z0 : (0 < Z%:R :> rat) by rewrite ltr0n ltnW.
have le k (A : {set 'I_Z}) : [&& A != set0, A != setT & (k <= rows A)%N] -> robustness <= (Z%:R - k%:R) / Z%:R.
  case/and3P=> A0 AT kA; rewrite /robustness mulrBl divff ?(lt0r_neq0 Z0) // ler_add2l ler_opp2.
  rewrite ler_pmul2r ?invr_gt0 // ler_nat; apply: leq_trans kA _.
  by apply: (bigmax_sup A); rewrite ?A0.
case: ifP => [_|/negbT]; last first.
  rewrite negb_or => /andP[even Z2]; have Z3 : (2 < Z)%N by rewrite ltn_neqAle eq_sym Z2.
  by have [A hA] := two_seen even Z3; exact: (le 2%N A).
have [l dec _] := alone (Ordinal (ltnW Z1)); apply: (le 1%N [set Ordinal (ltnW Z1)]); apply/and3P; split.
- by apply/set0Pn; exists (Ordinal (ltnW Z1)); rewrite inE.
- apply/eqP => full; have e : #|[set Ordinal (ltnW Z1)]| = Z by rewrite full cardsT card_ord.
  by move: (Z1); rewrite -{1}e cards1.
- by rewrite card_gt0; apply/set0Pn; exists l; rewrite inE.
Qed.

(* A set that two segments show, other than nothing and all, does not exist for odd Z when any two segments together connect
   all subgroups: then the bound is attained. *)
Definition perfect (rowset : pred 'I_Z) := forall l k, rowset l -> rowset k -> l != k -> forall A : {set 'I_Z},
  A != set0 -> decodable l A -> decodable k A -> A = setT.

(* Carries HSA-11, UNI-P1F. *)
Theorem perfect_attains_odd : (1 < Z)%N -> odd Z -> perfect predT -> robustness = (Z%:R - 1) / Z%:R.
Proof.
move=> Z1 oddZ perf; apply/eqP; rewrite eq_le; apply/andP; split; first by have := perfect_is_best Z1; rewrite oddZ.
have Z0 : (0 < Z%:R :> rat) by rewrite ltr0n ltnW.
rewrite /robustness mulrBl divff ?(lt0r_neq0 Z0) // ler_add2l ler_opp2 ler_pmul2r ?invr_gt0 // -[1]/(1%:R) ler_nat.
apply/bigmax_leqP => A /andP[A0 AT]; rewrite leqNgt; apply: contra AT => /card_gt1P[l [k [lA kA lk]]].
by apply/eqP; apply: (perf l k) => //; [move: lA | move: kA]; rewrite inE.
Qed.

(* For even Z there is one segment more, in which all subgroups are alone. *)
(* Carries HSA-11, UNI-P1F. *)
Theorem perfect_attains_even last : (2 < Z)%N -> ~~ odd Z -> perfect [pred l | l != last] ->
  robustness = (Z%:R - 2%:R) / Z%:R.
Proof.
move=> Z2 even perf; have Z1 : (1 < Z)%N by exact: ltnW.
apply/eqP; rewrite eq_le; apply/andP; split.
  by have := perfect_is_best Z1; rewrite (negPf even) (gtn_eqF Z2).
have Z0 : (0 < Z%:R :> rat) by rewrite ltr0n ltnW.
rewrite /robustness mulrBl divff ?(lt0r_neq0 Z0) // ler_add2l ler_opp2 ler_pmul2r ?invr_gt0 // ler_nat.
apply/bigmax_leqP => A /andP[A0 AT]; rewrite /rows (cardsD1 last) -[2%N]/(1 + 1)%N leq_add ?leq_b1 // leqNgt.
apply: contra AT => /card_gt1P[l [k [lA kA lk]]]; move: lA kA; rewrite !inE => /andP[ll lA] /andP[kl kA].
by apply/eqP; apply: (perf l k).
Qed.
End Matrix.
