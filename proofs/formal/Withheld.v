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

(* The numbers leave no such lie. *)
Lemma no_lie w e d h : (e = 0 -> w < h - d) -> w <= h - d -> 0 < w -> 2 * (h - d) <= d -> d <= h ->
  ~ (d - w + e) * d <= (h - w) * (h - d) + w.-1 * e.
Proof.
case: w => // w few wr _ big dh; have [r hr] : exists r, h = d + r by exists (h - d); lia.
move: few wr big; rewrite hr addKn => few wr big; have [v dv] : exists v, d = w.+1 + v by exists (d - w.+1); lia.
rewrite dv -addnA !addKn /= => le; rewrite dv in big; have v2 : v * (2 * r) <= v * (w.+1 + v) by rewrite leq_mul2l big orbT.
have vr : r * r <= v * r by rewrite leq_mul2r; apply/orP; right; lia.
case: e few le => [/(_ erefl) few|e _] le; last by move: (leq0n (e * v)) (leq0n (w * v)); lia.
have vr' : r.+1 * r <= v * r by rewrite leq_mul2r; apply/orP; right; lia.
by lia.
Qed.

(* In a round of Multi-RoundSecAgg the survivors that a user is given are a union of batches. *)
Section Batches.
Variables (H D : nat) (B : eqType) (batch : 'I_H -> B) (held names : 'I_H -> {set 'I_H}) (asked : pred 'I_H).
Definition in_batches := forall j, asked j -> forall i i', batch i = batch i' -> (i \in names j) = (i' \in names j).
Hypotheses (D_gt0 : 0 < D) (D_le_H : D <= H) (ok : lie D held names asked) (whole : in_batches).

(* Where D >= 2(H - D), each sum that comes out is over all honest users of some batches. *)
Theorem whole_batches S i i' : 2 * (H - D) <= D -> comes_out D held names asked S -> batch i = batch i' -> i \in S -> i' \in S.
Proof.
move=> big out same iS; apply/negPn/negP => i'S; have [self pair] := out i iS.
pose P := [set p | pair_gone D held names asked p]; pose X := [set j | asked j && (i \in names j)].
have outP k : k \in S -> k \notin P.
  move=> kS; rewrite inE; apply/negP => /(both_gone (proj1 (out k kS))); lia.
(* who names i a survivor names i' one too, and holds its share: the masking key of i' stays *)
have XE j : j \in X -> asked j /\ i' \in names j by rewrite inE => /andP[aj ij]; split=> //; rewrite -(whole aj same).
have i'P : i' \notin P.
  rewrite inE; apply/negP => gone; have : 2 * D <= H by apply: (both_gone (i := i')) gone; apply: leq_trans self _;
    apply/subset_leq_card/subsetP => j /XE [aj]; rewrite inE aj.
  lia.
have X_out j : j \in X -> j \notin S.
  move=> jX; apply/negP => jS; have [aj ij] := XE j jX; have [_ _ /(_ aj) [_ /subsetP /(_ i' ij) ih _]] := ok j.
  have ji : i' != j by apply: contraNneq i'S => ->.
  have [_ /(_ i' ji ih)] := out j jS; rewrite (negPf i'S) orbF.
  by have := outP j jS; move: i'P; rewrite !inE => /negPf-> /negPf->.
pose w := #|S|; have w_le : w <= H - D.
  have XS : X \subset ~: S by apply/subsetP => j /X_out; rewrite inE.
  have := cardsC S; have := leq_trans self (subset_leq_card XS); rewrite card_ord -/w; lia.
have w_gt0 : 0 < w by apply/card_gt0P; exists i.
(* whom a user of S holds is in S or P *)
have heldE k : k \in S -> held k \subset S :|: P.
  move=> kS; apply/subsetP => j jk; rewrite inE; case: (eqVneq j k) => [->|nj]; first by rewrite kS.
  have [_ /(_ j nj jk)] := out k kS; have := outP k kS; rewrite !inE => /negPf-> /=.
  by case/orP => [->|/andP[->]]; rewrite ?orbT.
have dis : #|S :|: P| = w + #|P|.
  by rewrite cardsU (_ : S :&: P = set0) ?cards0 ?subn0 //; apply/setP => k; rewrite inE in_set0; apply/andP => -[/outP /negPf->].
pose e := w + #|P| - D; have [_ Di _] := ok i; have De : D <= w + #|P|.
  by rewrite -dis (leq_trans Di) ?subset_leq_card ?heldE.
have i_quiet : ~~ asked i.
  apply/negP => ai; have iX : i \in X by rewrite inE ai; have [_ _ /(_ ai) []] := ok i.
  by have := X_out i iX; rewrite iS.
have upper : \sum_j #|[set p | asked j && (p \in held j :\: names j)] :&: P| <= (H - w) * (H - D) + w.-1 * e.
  rewrite (bigID (mem S)) /= addnC leq_add //.
    apply: leq_trans (_ : \sum_(j | j \notin S) (H - D) <= _); last first.
      have cS : #|~: S| = H - w by have := cardsC S; rewrite card_ord -/w; lia.
      by rewrite sum_nat_const leq_mul2r -cS; apply/orP; right; apply/subset_leq_card/subsetP => j jS; rewrite inE.
    by apply: leq_sum => j _; apply: leq_trans (subset_leq_card (subsetIl _ _)) (drops_most ok j).
  rewrite (bigD1 i) //= (_ : [set p | asked i && _] = set0) ?set0I ?cards0 ?add0n; last by apply/setP => p; rewrite !inE (negPf i_quiet).
  apply: leq_trans (_ : \sum_(j in S | j != i) e <= _).
    apply: leq_sum => j /andP[jS _]; apply: leq_trans (subset_leq_card (subsetIl _ _)) _.
    by apply: leq_trans (drops_le ok j) _; rewrite leq_sub2r // -dis subset_leq_card ?heldE.
  rewrite sum_nat_const (_ : #|_| = w.-1) //; rewrite /w (cardsD1 i) iS /= -cardsE; apply: eq_card => j; by rewrite !inE andbC.
have le : #|P| * D <= (H - w) * (H - D) + w.-1 * e.
  by apply: leq_trans upper; apply: names_count => p; rewrite inE.
have few : e = 0 -> w < H - D.
  move=> e0; have [p pP] : exists p, p \in P by apply/card_gt0P; lia.
  have pg : pair_gone D held names asked p by move: pP; rewrite inE.
  have sub : [set j | asked j && (p \in held j :\: names j)] \subset ~: (p |: S).
    apply/subsetP => j jp; rewrite !inE negb_or; apply/andP; split.
      by apply: contraTneq jp => ->; have := drops_irr ok p; rewrite !inE.
    apply/negP => jS; have := drops_le ok j; rewrite (_ : #|held j| - D = 0).
      by rewrite leqn0 cards_eq0 => /eqP/setP/(_ p); move: jp; rewrite !inE => ->.
    by apply/eqP; rewrite -leqn0 -[X in _ <= X]e0 /e -dis leq_sub2r ?subset_leq_card ?heldE.
  have := leq_trans pg (subset_leq_card sub); rewrite cardsCs setCK card_ord cardsU1 (_ : p \notin S); last first.
    by apply: contraL pP; exact: outP.
  by rewrite -/w; move: D_gt0 => D0 Dw; clear -D0 Dw; lia.
have {le} := le; rewrite (_ : #|P| = D - w + e); last by rewrite /e; lia.
move: few w_le w_gt0 big D_le_H; move: (w) (e) (D) (H) => a f d h; exact: no_lie.
Qed.
End Batches.

(* UNI-BATCHLIES: where 3t >= 2K + c, for K users of whom c < t collude. *)
(* Carries MRA-21, UNI-BATCHLIES. *)
Corollary uni_batchlies K c t (B : eqType) (batch : 'I_(K - c) -> B) held names asked (S : {set 'I_(K - c)}) i i' :
  c < t -> t <= K -> 2 * K + c <= 3 * t -> lie (t - c) held names asked -> in_batches batch names asked ->
  comes_out (t - c) held names asked S -> batch i = batch i' -> i \in S -> i' \in S.
Proof. by move=> ct tK big ok whole; apply: (whole_batches _ _ ok whole); lia. Qed.

(* 2t > K + c is not enough: with K = 15, batches of 3, c = 1 and t = 9 the input of one user of a batch of two honest ones comes
   out.  User i of the honest ones is in the batch (i + 1) / 3. *)
Lemma card_below n (P : pred nat) : #|[set i : 'I_n | P i]| = count P (iota 0 n).
Proof. by rewrite -sum1dep_card -(big_mkord P (fun=> 1)) sum1_count /index_iota subn0. Qed.

(* Carries MRA-21, UNI-BATCHLIES. *)
Theorem half_not_enough : 15 + 1 < 2 * 9 /\ exists held names asked,
  [/\ lie 8 held names asked, in_batches (fun i : 'I_14 => i.+1 %/ 3) names asked & comes_out 8 held names asked [set ord0]].
Proof.
split=> //; pose gone j := if j \in [:: 2; 3; 4; 12] then [:: 2; 3] else if j \in [:: 5; 6; 7; 11] then [:: 1; 3] else [:: 1; 2].
pose hold j i := (j != 0) || (i <= 8) && (i != 1); pose name j i := i.+1 %/ 3 \notin gone j.
pose held (j : 'I_14) := [set i : 'I_14 | hold j i]; pose names (j : 'I_14) := [set i : 'I_14 | name j i].
pose asked (j : 'I_14) := val j != 0.
have all14 (P : pred nat) : all P (iota 0 14) -> forall j : 'I_14, P j by move=> /allP ok j; apply: ok; rewrite mem_iota ltn_ord.
have gone8 i : 8 <= count (fun j => (j != 0) && (hold j i && ~~ name j i)) (iota 0 14) -> forall j : 'I_14, i = j -> pair_gone 8 held names asked j.
  move=> le j ij; have := card_below 14 (fun k => (k != 0) && (hold k i && ~~ name k i)).
  rewrite /pair_gone => c; apply: leq_trans le _; rewrite -c; apply/subset_leq_card/subsetP => k.
  by rewrite /asked /held /names !inE ij => /and3P[-> -> ->].
exists held, names, asked; split=> [j|j _ i i' /= same|i].
- split; first by rewrite inE; exact: (all14 (fun j => hold j j) isT).
    by rewrite card_below; exact: (all14 (fun j => 8 <= count (hold j) (iota 0 14)) isT).
  move=> aj; split; first by rewrite inE; exact: (all14 (fun j => name j j) isT).
    by apply/subsetP => i _; move: aj; rewrite /asked inE /hold => ->.
  by rewrite card_below; exact: (all14 (fun j => 8 <= count (name j) (iota 0 14)) isT).
- by rewrite !inE /name same.
- rewrite inE => /eqP->; split=> [|j j0].
    have := card_below 14 (fun k => (k != 0) && name k 0); rewrite /self_gone => c.
    apply: (@leq_trans (count (fun k => (k != 0) && name k 0) (iota 0 14))) => //; rewrite -c.
    by apply/subset_leq_card/subsetP => k; rewrite /asked /names !inE => /andP[-> ->].
  rewrite inE => hj; apply/orP; right; apply/orP; left; apply: (gone8 j) => //.
  have := all14 (fun i => hold 0 i ==> (i != 0) ==> (8 <= count (fun j => (j != 0) && (hold j i && ~~ name j i)) (iota 0 14))) isT j.
  by move=> /implyP/(_ hj)/implyP/(_ j0).
Qed.
