(* A server that also withholds shares, in the semi-honest profile of SecAgg on the complete graph with honest keys (spec/secagg.md,
   section 10), and in rounds of Multi-RoundSecAgg (spec/multi-round.md, section 6).  Claims UNI-WITHHELD, UNI-BATCHLIES. *)
From mathcomp Require Import all_ssreflect zify.
From secagg Require Import Lies.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Withheld.
(* H honest users; D of them make t with the colluders, who hold all shares and answer as the server likes. *)
Variables (H D : nat).
Implicit Types (held names : 'I_H -> {set 'I_H}) (asked : pred 'I_H) (S : {set 'I_H}).

(* User j got the shares of held j, among them its own, and masks its input with these users; if it is asked, it is given the
   survivors names j.  Both make t with the colluders (SAG-13, SAG-22); j is a survivor, and holds the shares of all of them. *)
Definition lie held names asked := forall j, [/\ j \in held j, D <= #|held j|
  & asked j -> [/\ j \in names j, names j \subset held j & D <= #|names j|]].

(* The self mask of i goes, its pairwise masks go. *)
Definition self_gone names asked i := D <= #|[set j | asked j && (i \in names j)]|.
Definition pair_gone held names asked i := D <= #|[set j | asked j && (i \in held j :\: names j)]|.

(* The sum over S comes out: the self masks of S go, and each pairwise mask goes, or is in two uploads of S. *)
Definition comes_out held names asked S := forall i, i \in S -> self_gone names asked i /\ forall j, j != i -> j \in held i ->
  [|| pair_gone held names asked i, pair_gone held names asked j | (j \in S) && (i \in held j)].

Section Bound.
Variables (held names : 'I_H -> {set 'I_H}) (asked : pred 'I_H).
Hypothesis ok : lie held names asked.
Local Notation drops j := [set i | asked j && (i \in held j :\: names j)].

Lemma drops_le j : #|drops j| <= #|held j| - D.
Proof.
have [_ _ legal] := ok j; case: (boolP (asked j)) => [/legal [_ sub le]|_]; last by rewrite (_ : [set i | _] = set0) ?cards0 //; apply/setP => i; rewrite !inE.
rewrite (_ : [set i | _] = held j :\: names j); last by apply/setP => i; rewrite inE.
by rewrite cardsD (setIidPr sub) leq_sub2l.
Qed.

Lemma drops_most j : #|drops j| <= H - D.
Proof. by apply: leq_trans (drops_le j) (leq_sub2r _ _); rewrite -[X in _ <= X]card_ord max_card. Qed.

Lemma drops_irr j : j \notin drops j.
Proof. by rewrite !inE; have [_ _ legal] := ok j; case: (boolP (asked j)) => // /legal [->]; rewrite andbF. Qed.

(* Who is named dropped is not named a survivor by the same user. *)
Lemma both_gone i : self_gone names asked i -> pair_gone held names asked i -> 2 * D <= H.
Proof.
rewrite /self_gone /pair_gone => s p; apply: leq_trans (_ : #|[set: 'I_H]| <= H); last by rewrite cardsT card_ord.
rewrite -(cardsID [set j | asked j && (i \in names j)]) setTI mul2n -addnn leq_add // (leq_trans p) //.
by apply/subset_leq_card/subsetP => j; rewrite !inE => /and3P[-> /negPf->].
Qed.

(* Names of dropped users, counted by those who give them and by those who are named. *)
Lemma names_count (P : {set 'I_H}) : (forall p, p \in P -> pair_gone held names asked p) -> #|P| * D <= \sum_j #|drops j :&: P|.
Proof.
move=> gone; apply: (@leq_trans (\sum_(p in P) #|[set j | asked j && (p \in held j :\: names j)]|)).
  by rewrite -sum_nat_const; apply: leq_sum => p /gone.
rewrite (eq_bigr (fun p => \sum_(j | p \in drops j) 1)) => [|p _]; last first.
  by rewrite -sum1dep_card; apply: eq_bigl => j; rewrite inE.
rewrite (exchange_big_dep predT) //=; apply: leq_sum => j _; rewrite -sum1_card leq_eqVlt; apply/orP; left; apply/eqP.
by apply: eq_bigl => p; rewrite !inE andbC.
Qed.
End Bound.

(* A single input comes out only when the numbers allow it. *)
Lemma withheld_bound held names asked i : 0 < D -> D <= H -> lie held names asked -> comes_out held names asked [set i] ->
  D = 1 \/ D + 2 <= H /\ D * D.-1 <= H.-1 * (H - D).
Proof.
move=> D0 DH ok /(_ i (set11 i)) [self pair]; case: (ltnP 1 D) => D1; last by left; lia.
right; case: (boolP (pair_gone held names asked i)) => [/(both_gone self) two|ni].
  by split; [lia | rewrite [X in _ <= X]mulnC leq_mul //; lia].
pose J := held i :\ i; have [ii le_i _] := ok i; have cJ : #|held i| = #|J|.+1 by rewrite (cardsD1 i) ii.
have gone j : j \in J -> pair_gone held names asked j.
  by rewrite !inE => /andP[ji jh]; have := pair j ji jh; rewrite (negPf ni) inE (negPf ji) orbF.
have count := names_count gone; pose e := #|held i| - D.
have upper : \sum_j #|[set p | asked j && (p \in held j :\: names j)] :&: J| <= H.-1 * (H - D) + e.
  rewrite (bigD1 i) //= addnC leq_add //; last by apply: leq_trans (subset_leq_card (subsetIl _ _)) (drops_le ok i).
  rewrite -[X in X.-1 * _](card_ord H) -(cardC1 i) -sum_nat_const; apply: leq_sum => j _.
  exact: leq_trans (subset_leq_card (subsetIl _ _)) (drops_most ok j).
have le := leq_trans count upper; have [j jJ] : exists j, j \in J by apply/card_gt0P; lia.
have jg := gone j jJ; have jH : D <= H.-1.
  apply: leq_trans jg _; rewrite -[X in _ <= X.-1](card_ord H) -(cardC1 j); apply/subset_leq_card/subsetP => k.
  rewrite inE !inE => kj; apply: contraTneq kj => ->; have := drops_irr ok j; by rewrite !inE.
have far : e = 0 -> D < H.-1.
  move=> e0; have [iN|] := boolP (i \in [set k | asked k && (j \in held k :\: names k)]).
    by have := drops_le ok i; rewrite -/e e0 leqn0 cards_eq0 => /eqP/setP/(_ j); rewrite !inE; move: iN; rewrite !inE => ->.
  move=> iN; have ij : j != i by move: jJ; rewrite !inE => /andP[].
  have : #|[set k | asked k && (j \in held k :\: names k)]| < #|[set~ j]|.
    apply: proper_card; apply/properP; split; last by exists i; rewrite // !inE eq_sym.
    apply/subsetP => k; rewrite !inE => kj; apply: contraTneq kj => ->; have := drops_irr ok j; by rewrite !inE.
  rewrite cardsC1 card_ord; exact: leq_ltn_trans jg.
have {le} := le; rewrite (_ : #|J| = D.-1 + e); last by rewrite /e; lia.
move: far jH D1 DH; move: (e) (D) (H) => f d h far jh d1 dh le.
have [a [r [da hr]]] : exists a r, d = a.+2 /\ h = a.+2 + r by exists (d - 2), (h - d); lia.
move: far jh le; rewrite da hr addKn -[(a.+2 + r).-1]/(a.+1 + r) addSnnS mulnDl => /= far jh le; have fa : f <= f * a.+2 by rewrite leq_pmulr.
split; last by rewrite mulnC; move: (a.+1 * a.+2) (f * a.+2) ((a + r.+1) * r) fa le => x y z; lia.
case: r {hr dh} far jh le => [|[|r]] far jh le; [lia | exfalso | lia].
have f2 : f * 2 <= f * a.+2 by rewrite leq_mul2l orbT.
have a1 : a.+2 <= a.+1 * a.+2 by rewrite leq_pmull.
by move: le f2 a1; rewrite muln1; move: (a.+1 * a.+2) (f * a.+2) => x y; lia.
Qed.
End Withheld.

(* And then it does: with D = 1 each user masks with colluders alone; else one user does with D - 1 honest ones, which the
   others name dropped in turn. *)
Lemma withheld_attained H D : 0 < D -> D = 1 \/ D + 2 <= H /\ D * D.-1 <= H.-1 * (H - D) -> D <= H ->
  exists held names asked (i : 'I_H), lie D held names asked /\ comes_out D held names asked [set i].
Proof.
move=> D0 [D1|[room enough]] DH.
  have H0 : 0 < H by lia.
  exists (fun j => [set j]), (fun j => [set j]), predT, (Ordinal H0); split=> [j|i].
    by rewrite !inE cards1 D1 eqxx.
  rewrite inE => /eqP->; split=> [|j ji]; last by rewrite inE (negPf ji).
  by rewrite /self_gone D1; apply/card_gt0P; exists (Ordinal H0); rewrite !inE.
move: room enough DH; case: H => [|h]; first lia.
rewrite -[h.+1.-1]/h => room enough DH; pose s := h.+1 - D.
have [s0 sh Dh] : [/\ 0 < s, s <= h & D < h] by rewrite /s; split; lia.
have load : D - D * s %/ h <= s.
  rewrite leq_subLR addnC -leq_subLR leq_divRL; last lia.
  rewrite mulnBl leq_subLR; move: enough; rewrite -/s [h * s]mulnC.
  have -> : D.-1 = h - s by rewrite /s; lia.
  by rewrite mulnBr leq_subLR addnC.
pose tgt (i : 'I_h.+1) := if unlift ord0 i is Some k then ~~ surv h s k else false.
pose drop (j i : 'I_h.+1) :=
  if unlift ord0 j is Some k then if unlift ord0 i is Some l then ~~ surv h s l && after D k l else false else false.
pose held (j : 'I_h.+1) := if j == ord0 then ord0 |: [set i | tgt i] else setT.
exists held, (fun j => held j :\: [set i | drop j i]), predT, ord0.
have irr j : ~~ drop j j.
  by rewrite /drop; case: unlift => // k; rewrite (negPf (after_irr _ Dh)) andbF.
have own j : j \in held j by rewrite /held; case: eqP => [->|]; rewrite !inE.
have none i : drop ord0 i = false by rewrite /drop unlift_none.
have lifted (P : pred 'I_h) (Q : pred 'I_h.+1) : (forall k, Q (lift ord0 k) = P k) -> #|[set k | P k]| <= #|[set j | Q j]|.
  move=> PQ; rewrite -(card_imset _ (@lift_inj _ ord0)); apply/subset_leq_card/subsetP => _ /imsetP[k kP ->].
  by move: kP; rewrite !inE PQ.
have c0 : D <= #|held ord0|.
  rewrite /held eqxx cardsU1 inE {1}/tgt unlift_none add1n.
  have le : #|[set k : 'I_h | ~~ surv h s k]| <= #|[set j | tgt j]| by apply: lifted => k; rewrite /tgt liftK.
  have := cardsC [set k : 'I_h | surv h s k]; rewrite (card_surv s0 sh) card_ord.
  rewrite (_ : ~: _ = [set k : 'I_h | ~~ surv h s k]); last by apply/setP => k; rewrite !inE.
  by rewrite /s in le *; lia.
have cH j : j != ord0 -> D <= #|held j :\: [set i | drop j i]|.
  move=> j0; rewrite /held (negPf j0) cardsD setTI cardsT card_ord.
  case: (unliftP ord0 j) j0 => [k ->|->]; last by rewrite eqxx.
  move=> _; apply: (@leq_trans (h.+1 - s)); [by rewrite /s; lia | apply: leq_sub2l].
  apply: leq_trans load; apply: leq_trans (after_load s0 sh k Dh).
  rewrite -[X in _ <= X](card_imset _ (@lift_inj _ ord0)); apply/subset_leq_card/subsetP => i.
  rewrite inE /drop liftK; case: (unliftP ord0 i) => [l ->|->]; rewrite ?liftK ?unlift_none // => il.
  by apply: imset_f; rewrite inE.
split=> [j|i].
  split; first exact: own.
    by case: (eqVneq j ord0) => [->|j0]; [exact: c0 | rewrite /held (negPf j0) cardsT card_ord].
  move=> _; split; [by rewrite inE own inE irr | exact: subsetDl |].
  case: (eqVneq j ord0) => [->|/cH //].
  by rewrite (_ : [set i | drop ord0 i] = set0) ?setD0 //; apply/setP => i; rewrite !inE none.
rewrite inE => /eqP->; split.
  rewrite /self_gone (_ : [set j | _] = setT) ?cardsT ?card_ord //; apply/setP => j; rewrite !inE.
  have -> : drop j ord0 = false by rewrite /drop unlift_none; case: unlift.
  by rewrite /held; case: eqP => // _; rewrite !inE.
move=> j j0 jh; move: jh j0; rewrite {1}/held eqxx !inE => /orP[/eqP-> //|]; rewrite /tgt; case: (unliftP ord0 j) => [l -> nl _|] //.
apply/orP; right; rewrite orbF.
apply: leq_trans (after_ge s0 sh l Dh) _; apply: lifted => k.
have k0 : (lift ord0 k == ord0 :> 'I_h.+1) = false by rewrite eq_sym (negPf (neq_lift _ _)).
by rewrite /= 2!inE (_ : held (lift ord0 k) = setT) ?inE ?andbT ?negbK /drop ?liftK ?nl // /held k0.
Qed.

(* UNI-WITHHELD: with c < t colluders of N users, a single input comes out exactly then. *)
(* Carries SAG-12, SAG-13, SAG-22, UNI-WITHHELD. *)
Theorem uni_withheld N c t : c < t -> t <= N ->
  (exists held names asked (i : 'I_(N - c)), lie (t - c) held names asked /\ comes_out (t - c) held names asked [set i]) <->
  t = c.+1 \/ t + 2 <= N /\ (t - c) * (t - c - 1) <= (N - c - 1) * (N - t).
Proof.
move=> ct tN; have DN : t - c <= N - c by lia.
have D0 : 0 < t - c by lia.
have -> : N - t = N - c - (t - c) by lia.
rewrite !subn1; split=> [[held [names [asked [i [ok out]]]]]|cond].
  by case: (withheld_bound D0 DN ok out) => [D1|[room enough]]; [left; lia | right; split=> //; lia].
by apply: withheld_attained => //; case: cond => [->|[room enough]]; [left; lia | right; split=> //; lia].
Qed.
