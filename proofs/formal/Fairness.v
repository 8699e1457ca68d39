(* The fairness gap when users drop out at any rates (spec/multi-round.md, sections 3 and 8): the least gap that a way to choose
   can have, and that choosing the complete batches of the least frequency has it.  Claims UNI-FAIR, UNI-LEAST. *)
From mathcomp Require Import all_ssreflect all_algebra ring zify.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory. Local Open Scope ring_scope.

Lemma eqW (R : realFieldType) (x y : R) : x = y -> x <= y. Proof. by move=> ->. Qed.

Section Big.
Variables (R : realFieldType) (I : finType) (P : pred I) (F : I -> R) (x0 : R).

Lemma bigmin_le i : P i -> \big[Num.min/x0]_(j | P j) F j <= F i.
Proof.
move=> Pi; have := mem_index_enum i; elim: (index_enum I) => //= j s IH; rewrite inE big_cons => /predU1P[<-|/IH le].
  by rewrite Pi le_minl lexx.
by case: (P j) => //; rewrite le_minl le orbT.
Qed.

Lemma le_bigmax i : P i -> F i <= \big[Num.max/x0]_(j | P j) F j.
Proof.
move=> Pi; have := mem_index_enum i; elim: (index_enum I) => //= j s IH; rewrite inE big_cons => /predU1P[<-|/IH le].
  by rewrite Pi le_maxr lexx.
by case: (P j) => //; rewrite le_maxr le orbT.
Qed.

Lemma le_bigmin x : x <= x0 -> (forall i, P i -> x <= F i) -> x <= \big[Num.min/x0]_(i | P i) F i.
Proof. by move=> le all; elim/big_rec: _ => // i y Pi xy; rewrite le_minr all. Qed.

Lemma bigmax_le x : x0 <= x -> (forall i, P i -> F i <= x) -> \big[Num.max/x0]_(i | P i) F i <= x.
Proof. by move=> le all; elim/big_rec: _ => // i y Pi xy; rewrite le_maxl all. Qed.
End Big.

Section Fairness.
(* M batches, of which k make a round; p B is the probability that exactly those of B are complete, the same in each round. *)
Variables (R : realFieldType) (M k : nat).
Local Notation batches := {set 'I_M}.
Definition law (p : batches -> R) := (forall B, 0 <= p B) /\ \sum_B p B = 1.

(* Of each round, the latest first: which batches were complete, and which were chosen. *)
Definition history := seq (batches * batches).
Definition frequency (h : history) b := count (fun round : batches * batches => b \in round.2) h.

(* No round that could take place is skipped: k complete batches are chosen where there are so many, and else none. *)
Definition choice (B S : batches) := if (k <= #|B|)%N then (S \subset B) && (#|S| == k) else S == set0.

(* A way to choose, which may draw, and may use all that came before: s h B S is the probability of the choice S. *)
Definition strategy := history -> batches -> batches -> R.
Definition valid (s : strategy) := forall h B,
  [/\ forall S, 0 <= s h B S, \sum_S s h B S = 1 & forall S, s h B S != 0 -> choice B S].

(* The complete batches of the least frequency, in whatever way ties are drawn. *)
Definition least (s : strategy) := forall h B S, s h B S != 0 ->
  forall b b', b \in S -> b' \in B :\: S -> (frequency h b <= frequency h b')%N.

(* The mean after t rounds, the share of the rounds that a batch is in, and the gap between the largest and the least share. *)
Definition next (p : batches -> R) (s : strategy) (phi : history -> R) h := \sum_B p B * \sum_S s h B S * phi ((B, S) :: h).
Definition mean p s t (phi : history -> R) := iter t (next p s) phi [::].
Definition share p s t b := mean p s t (fun h => (frequency h b)%:R) / t%:R.
Definition gap p s t := \big[Num.max/0]_(bb : 'I_M * 'I_M) (share p s t bb.1 - share p s t bb.2).

(* g(A): the mean of the most batches of A that a round can have.  The shares lie between these two numbers at best. *)
Definition most (p : batches -> R) (A : batches) := \sum_(B : batches | (k <= #|B|)%N) p B * (minn #|A :&: B| k)%:R.
Definition high p := \big[Num.max/most p setT / M%:R]_(A : batches | A != set0) ((most p setT - most p (~: A)) / #|A|%:R).
Definition low p := \big[Num.min/most p setT / M%:R]_(A : batches | A != set0) (most p A / #|A|%:R).
Definition least_gap p := high p - low p.

Section Law.
Variable p : batches -> R.
Hypothesis lawp : law p.
Lemma p_ge0 B : 0 <= p B. Proof. exact: (proj1 lawp). Qed.
Hint Resolve p_ge0 : core.

Lemma card_gt0R (A : batches) : A != set0 -> 0 < #|A|%:R :> R. Proof. by rewrite -card_gt0 ltr0n. Qed.

Lemma most_ge0 A : 0 <= most p A. Proof. by apply: sumr_ge0 => B _; rewrite mulr_ge0 ?ler0n. Qed.
Lemma most0 : most p set0 = 0. Proof. by rewrite /most big1 // => B _; rewrite set0I cards0 min0n mulr0. Qed.
Lemma most_add (A : batches) : most p setT <= most p (~: A) + #|A|%:R.
Proof.
have [_ one] := lawp; have -> : #|A|%:R = \sum_B p B * #|A|%:R by rewrite -mulr_suml one mul1r.
rewrite [X in _ <= _ + X](bigID (fun B : batches => k <= #|B|)%N) /= addrA -big_split /=; apply: ler_paddr.
  by apply: sumr_ge0 => B _; rewrite mulr_ge0 ?ler0n.
apply: ler_sum => B _; rewrite -mulrDr ler_wpmul2l // -natrD ler_nat setTI.
have le : (#|B :&: A| <= #|A|)%N := subset_leq_card (subsetIr B A).
by have := cardsID A B; rewrite setDE [B :&: ~: A]setIC; move: le; move: #|_ :&: A| #|~: A :&: _| #|A| #|B|; lia.
Qed.

Lemma most_mono (A B : batches) : A \subset B -> most p A <= most p B.
Proof.
move=> AB; apply: ler_sum => D _; rewrite ler_wpmul2l // ler_nat.
by have := subset_leq_card (setSI D AB); move: #|A :&: D| #|B :&: D|; lia.
Qed.

Lemma low_le (A : batches) : low p * #|A|%:R <= most p A.
Proof.
case: (eqVneq A set0) => [->|A0]; first by rewrite cards0 mulr0 most_ge0.
by rewrite -ler_pdivl_mulr ?card_gt0R //; exact: (bigmin_le (fun A : batches => most p A / #|A|%:R)).
Qed.
Lemma high_ge (A : batches) : most p setT - most p (~: A) <= high p * #|A|%:R.
Proof.
case: (eqVneq A set0) => [->|A0]; first by rewrite cards0 mulr0 setC0 subrr.
rewrite -ler_pdivr_mulr ?card_gt0R //.
exact: (le_bigmax (fun A : batches => (most p setT - most p (~: A)) / #|A|%:R)).
Qed.

Lemma low_ge0 : 0 <= low p.
Proof. by apply: le_bigmin => [|A _]; rewrite divr_ge0 ?most_ge0 ?ler0n. Qed.

Lemma high_le1 : high p <= 1.
Proof.
have le (A : batches) (x : R) : x <= #|A|%:R -> x / #|A|%:R <= 1.
  case: (eqVneq A set0) => [->|A0]; first by rewrite cards0 invr0 mulr0 ler01.
  by rewrite ler_pdivr_mulr ?card_gt0R // mul1r.
apply: bigmax_le => [|A _]; last by rewrite le // ler_subl_addl most_add.
by have := le setT (most p setT); rewrite cardsT card_ord; apply; have := most_add setT; rewrite setCT most0 add0r cardsT card_ord.
Qed.

Lemma low_le_high : low p <= high p.
Proof.
apply: (@le_trans _ _ (most p setT / M%:R)); first by rewrite /low; elim/big_rec: _ => // A x _; rewrite le_minl orbC => ->.
by rewrite /high; elim/big_rec: _ => // A x _; rewrite le_maxr orbC => ->.
Qed.

Section Strategy.
Variable s : strategy.
Hypothesis ok : valid s.

Lemma s_ge0 h B S : 0 <= s h B S. Proof. by case: (ok h B). Qed.
Lemma s_sum h B : \sum_S s h B S = 1. Proof. by case: (ok h B). Qed.
Lemma s_choice h B S : s h B S != 0 -> choice B S. Proof. by case: (ok h B) => _ _; exact. Qed.
Hint Resolve s_ge0 : core.

Lemma next_le phi psi h : (forall B S, phi ((B, S) :: h) <= psi ((B, S) :: h)) -> next p s phi h <= next p s psi h.
Proof. by move=> le; apply: ler_sum => B _; apply: ler_wpmul2l => //; apply: ler_sum => S _; apply: ler_wpmul2l. Qed.

Lemma next_affine a c phi h : next p s (fun h => a * phi h + c) h = a * next p s phi h + c.
Proof.
rewrite /next -[X in _ = _ + X]mul1r -(proj2 lawp) mulr_suml mulr_sumr -big_split /=; apply: eq_bigr => B _.
rewrite mulrCA -mulrDr; congr (_ * _); rewrite -[X in _ = _ + X]mul1r -(s_sum h B) mulr_suml mulr_sumr -big_split /=.
by apply: eq_bigr => S _; rewrite mulrDr mulrCA.
Qed.

Lemma next_sum (I : finType) (P : pred I) (phi : I -> history -> R) h :
  next p s (fun h => \sum_(i | P i) phi i h) h = \sum_(i | P i) next p s (phi i) h.
Proof.
rewrite /next exchange_big /=; apply: eq_bigr => B _; rewrite -mulr_sumr; congr (_ * _).
by rewrite exchange_big /=; apply: eq_bigr => S _; rewrite mulr_sumr.
Qed.

(* Of the mean only histories of t rounds count. *)
Lemma iter_le t phi psi h : (forall h', size h' = (t + size h)%N -> phi h' <= psi h') ->
  iter t (next p s) phi h <= iter t (next p s) psi h.
Proof.
elim: t h => [|t IH] h le; first exact: le.
by rewrite !iterS; apply: next_le => B S; apply: IH => h' /= e; apply: le; rewrite e addnS.
Qed.

Lemma mean_le t phi psi : (forall h, size h = t -> phi h <= psi h) -> mean p s t phi <= mean p s t psi.
Proof. by move=> le; apply: iter_le => h e; apply: le; rewrite e addn0. Qed.

Lemma mean_eq t phi psi : (forall h, size h = t -> phi h = psi h) -> mean p s t phi = mean p s t psi.
Proof. by move=> e; apply: le_anti; rewrite !mean_le // => h /e ->. Qed.

Lemma mean_affine t a c phi : mean p s t (fun h => a * phi h + c) = a * mean p s t phi + c.
Proof.
elim: t phi => // t IH phi; rewrite /mean !iterSr -!/(mean p s t _) -IH; apply: mean_eq => h _; exact: next_affine.
Qed.

Lemma mean_sum t (A : batches) phi : mean p s t (fun h => \sum_(b in A) phi b h) = \sum_(b in A) mean p s t (phi b).
Proof.
elim: t phi => // t IH phi; rewrite /mean iterSr -!/(mean p s t _).
rewrite (eq_bigr (fun b => mean p s t (next p s (phi b)))) => [|b _]; last by rewrite /mean iterSr.
rewrite -IH; apply: mean_eq => h _; exact: next_sum.
Qed.

(* What grows by c at most in a round is c t at most after t rounds. *)
Lemma mean_drift t c phi : (forall h, next p s phi h <= phi h + c) -> mean p s t phi <= phi [::] + t%:R * c.
Proof.
move=> le; elim: t => [|t IH]; first by rewrite mul0r addr0.
rewrite /mean iterSr -/(mean p s t _); apply: (@le_trans _ _ (mean p s t (fun h => 1 * phi h + c))).
  by apply: mean_le => h _; rewrite mul1r.
by rewrite mean_affine mul1r mulrS mulrDl mul1r [c + _]addrC addrA ler_add2r.
Qed.

(* The batches of A in a round, in the mean, and how often they were chosen. *)
Definition expected (A : batches) h := \sum_B p B * \sum_S s h B S * #|A :&: S|%:R.
Definition number (A : batches) h : R := \sum_(b in A) (frequency h b)%:R.

Lemma number_next A h : next p s (number A) h = number A h + expected A h.
Proof.
rewrite addrC -[X in _ = _ + X]mul1r -(proj2 lawp) mulr_suml -big_split /=; apply: eq_bigr => B _.
rewrite -mulrDr; congr (_ * _); rewrite -[X in _ = _ + X]mul1r -[X in _ = _ + X * _](s_sum h B) mulr_suml -big_split /=; apply: eq_bigr => S _.
rewrite -mulrDr; congr (_ * _); rewrite /number -sum1_card natr_sum (eq_bigl _ _ (fun b => in_setI b A S)) big_mkcondr -big_split /=.
by apply: eq_bigr => b _; rewrite natrD; case: (b \in S).
Qed.

(* Only states with k complete batches or more count. *)
Lemma expected_taking (A : batches) h : expected A h = \sum_(B : batches | (k <= #|B|)%N) p B * \sum_S s h B S * #|A :&: S|%:R.
Proof.
rewrite /expected (bigID (fun B : batches => k <= #|B|)%N) /= [X in _ + X]big1 ?addr0 // => B /negPf kB.
rewrite big1 ?mulr0 // => S _; case: (eqVneq (s h B S) 0) => [->|/s_choice]; first by rewrite mul0r.
by rewrite /choice kB => /eqP ->; rewrite setI0 cards0 mulr0.
Qed.

(* No way to choose has more batches of A than g(A), in the mean. *)
Lemma expected_le (A : batches) h : expected A h <= most p A.
Proof.
rewrite expected_taking; apply: ler_sum => B kB; apply: ler_wpmul2l => //.
rewrite -[X in _ <= X]mul1r -[X in _ <= X * _](s_sum h B) mulr_suml; apply: ler_sum => S _.
case: (eqVneq (s h B S) 0) => [->|/s_choice]; first by rewrite !mul0r.
rewrite /choice kB => /andP[SB /eqP Sk]; apply: ler_wpmul2l => //; rewrite ler_nat leq_min.
by rewrite (subset_leq_card (setIS A SB)) -Sk subset_leq_card ?subsetIr.
Qed.

(* That many it has where the choice takes the batches of A first. *)
Lemma expected_eq (A : batches) h :
  (forall B S, s h B S != 0 -> forall b b', b \in S -> b' \in B :\: S -> b' \in A -> b \in A) -> expected A h = most p A.
Proof.
move=> first; rewrite expected_taking; apply: eq_bigr => B kB; congr (_ * _).
rewrite -[RHS]mul1r -[X in _ = X * _](s_sum h B) mulr_suml; apply: eq_bigr => S _.
case: (eqVneq (s h B S) 0) => [->|nz]; first by rewrite !mul0r.
move: (s_choice nz); rewrite /choice kB => /andP[SB /eqP Sk]; congr (_ * _%:R); apply/eqP.
rewrite eqn_leq leq_min (subset_leq_card (setIS A SB)) -{1}Sk subset_leq_card ?subsetIr //= geq_min.
case: (boolP (A :&: B \subset S)) => [sub|/subsetPn [b' /setIP[b'A b'B] b'S]].
  by rewrite subset_leq_card // subsetI subsetIl sub.
rewrite -Sk orbC subset_leq_card // subsetI subxx andbT; apply/subsetP => b bS.
by apply: (first B S nz b b') => //; rewrite inE b'S.
Qed.

Lemma expected_all h : expected setT h = most p setT.
Proof. by apply: expected_eq => B S _ b b' *; rewrite inE. Qed.

Lemma mean_number A t : mean p s t (number A) <= t%:R * most p A.
Proof.
apply: le_trans (mean_drift (c := most p A) t _) _ => [h|]; first by rewrite number_next ler_add2l expected_le.
by rewrite /number big1 ?add0r.
Qed.

Lemma mean_number_all t : mean p s t (number setT) = t%:R * most p setT.
Proof.
elim: t => [|t IH]; first by rewrite /mean /number /= big1 ?mul0r.
rewrite /mean iterSr -/(mean p s t _) (@mean_eq _ _ (fun h => 1 * number setT h + most p setT)).
  by rewrite mean_affine IH mul1r mulrS mulrDl mul1r addrC.
by move=> h _; rewrite mul1r number_next expected_all.
Qed.

Lemma shares_in (A : batches) t : (0 < t)%N -> \sum_(b in A) share p s t b = mean p s t (number A) / t%:R.
Proof. by move=> t0; rewrite mean_sum mulr_suml. Qed.

Lemma shares_le (A : batches) t : (0 < t)%N -> \sum_(b in A) share p s t b <= most p A.
Proof. by move=> t0; rewrite shares_in // ler_pdivr_mulr ?ltr0n // mulrC mean_number. Qed.

Lemma shares_ge (A : batches) t : (0 < t)%N -> most p setT - most p (~: A) <= \sum_(b in A) share p s t b.
Proof.
move=> t0; have <- : \sum_b share p s t b = most p setT.
  have := shares_in setT t0; rewrite mean_number_all mulrC mulKf ?pnatr_eq0 ?lt0n_neq0 // => <-.
  by apply: eq_bigl => b; rewrite inE.
rewrite (bigID (mem A)) /= -addrA ger_addl subr_le0 -(eq_bigl _ _ (fun b => in_setC b A)).
exact: shares_le.
Qed.

(* However a server chooses, and whatever it remembers: some batch has no more than the low share, and some one no less than the
   high share. *)
(* Carries UNI-FAIR. *)
Theorem shares_apart t : (0 < M)%N -> (0 < t)%N ->
  (exists b, share p s t b <= low p) /\ (exists b, high p <= share p s t b).
Proof.
move=> M0 t0; have cardR (A : batches) x : \sum_(b in A) x = x * #|A|%:R :> R by rewrite sumr_const mulr_natr.
have cardM : M%:R = #|[set: 'I_M]|%:R :> R by rewrite cardsT card_ord.
have full : [set: 'I_M] != set0 by rewrite -card_gt0 cardsT card_ord.
split; [pose b := [arg min_(b < Ordinal M0) share p s t b]%O | pose b := [arg max_(b > Ordinal M0) share p s t b]%O]; exists b.
  have least_b b' : share p s t b <= share p s t b' by rewrite /b; case: arg_minP => // i _; exact.
  have le (A : batches) : A != set0 -> share p s t b <= most p A / #|A|%:R.
    move=> A0; rewrite ler_pdivl_mulr ?card_gt0R // -cardR; apply: le_trans (shares_le A t0).
    by apply: ler_sum => b' _.
  by apply: le_bigmin => //; rewrite cardM le.
have most_b b' : share p s t b' <= share p s t b by rewrite /b; case: arg_maxP => // i _; exact.
have le (A : batches) : A != set0 -> (most p setT - most p (~: A)) / #|A|%:R <= share p s t b.
  move=> A0; rewrite ler_pdivr_mulr ?card_gt0R // -cardR; apply: le_trans (shares_ge A t0) _.
  by apply: ler_sum => b' _.
by apply: bigmax_le => //; rewrite cardM -[most p setT]subr0 -most0 -setCT le.
Qed.

(* So no way to choose has a smaller gap than this. *)
(* Carries UNI-FAIR. *)
Corollary gap_ge t : (0 < M)%N -> (0 < t)%N -> least_gap p <= gap p s t.
Proof.
move=> M0 t0; have [[b lb] [b' hb]] := shares_apart M0 t0; apply: (@le_trans _ _ (share p s t b' - share p s t b)).
  exact: ler_sub.
exact: (@le_bigmax _ _ predT (fun bb => share p s t bb.1 - share p s t bb.2) 0 (b', b)).
Qed.

Section Least.
Hypothesis least_s : least s.

(* The chance that b is in the next round. *)
Definition chance b h := \sum_B p B * \sum_S s h B S * (b \in S)%:R.

Lemma expected_chance (A : batches) h : expected A h = \sum_(b in A) chance b h.
Proof.
rewrite /chance exchange_big /=; apply: eq_bigr => B _; rewrite -mulr_sumr; congr (_ * _).
rewrite exchange_big /=; apply: eq_bigr => S _; rewrite -mulr_sumr; congr (_ * _).
by rewrite -sum1_card natr_sum (eq_bigl _ _ (fun b => in_setI b A S)) big_mkcondr; apply: eq_bigr => b _; case: (b \in S).
Qed.

(* The batches of the lowest frequencies are taken first. *)
Lemma lowest_first m h : expected [set b | frequency h b <= m]%N h = most p [set b | frequency h b <= m]%N.
Proof. by apply: expected_eq => B S nz b b' bS b'S; rewrite !inE; apply: leq_trans; apply: least_s nz b b' bS b'S. Qed.

(* Sums by frequency, in two ways. *)
Lemma by_parts (f : 'I_M -> nat) (W : nat -> R) X n : (forall b, f b <= n)%N ->
  \sum_b W (f b) * X b = W n * (\sum_b X b) + \sum_(m < n) (W m - W m.+1) * \sum_(b | (f b <= m)%N) X b.
Proof.
move=> fn; rewrite mulr_sumr.
under [X in _ = _ + X]eq_bigr do rewrite mulr_sumr big_mkcond; rewrite exchange_big -big_split /=.
apply: eq_bigr => b _; rewrite -big_mkcond -mulr_suml -mulrDl; congr (_ * _); apply/eqP.
rewrite addrC -subr_eq -(big_geq_mkord (f b) n predT (fun i => W i - W i.+1)) -opprB -(telescope_sumr W (fn b)) -sumrN.
by apply/eqP/eq_bigr => m _; rewrite opprB.
Qed.

Lemma by_parts_up (f : 'I_M -> nat) (W : nat -> R) X n : (forall b, f b <= n)%N ->
  \sum_b W (f b) * X b = W 0%N * (\sum_b X b) + \sum_(m < n) (W m.+1 - W m) * \sum_(b | (m < f b)%N) X b.
Proof.
move=> fn; rewrite mulr_sumr.
under [X in _ = _ + X]eq_bigr do rewrite mulr_sumr big_mkcond; rewrite exchange_big -big_split /=.
apply: eq_bigr => b _; rewrite -big_mkcond -mulr_suml -mulrDl; congr (_ * _); apply/eqP.
by rewrite addrC -subr_eq -(big_ord_widen n (fun m => W m.+1 - W m) (fn b)) -(big_mkord xpredT (fun m => W m.+1 - W m)) telescope_sumr.
Qed.

Definition pos (x : R) := Num.max x 0.

Lemma pos_le x y : x <= y -> pos x <= pos y. Proof. by move=> xy; rewrite /pos le_maxl !le_maxr xy lexx !orbT. Qed.
Lemma pos0 x : x <= 0 -> pos x = 0. Proof. exact: max_idPr. Qed.
Lemma pos_ge0 x : 0 <= pos x. Proof. by rewrite /pos le_maxr lexx orbT. Qed.

(* A step u of at most 1 adds at most 2 u (x above 0) + 1 to the square of x above 0. *)
Lemma pos_step x u : `|u| <= 1 -> pos (x + u) ^+ 2 <= (2%:R * pos x) * u + (pos x ^+ 2 + 1).
Proof.
move=> u1; have uu : u ^+ 2 <= 1 by rewrite -[u ^+ 2]ger0_norm ?sqr_ge0 // normrX expr_le1.
apply: (@le_trans _ _ ((2%:R * pos x) * u + (pos x ^+ 2 + u ^+ 2))); last by rewrite ler_add2l ler_add2l.
have -> : 2%:R * pos x * u + (pos x ^+ 2 + u ^+ 2) = (pos x + u) ^+ 2 by ring.
case: (leP (x + u) 0) => [/pos0 ->|xu0]; first by rewrite expr0n /= sqr_ge0.
have le : x + u <= pos x + u by rewrite ler_add2r /pos le_maxr lexx.
by rewrite {1}/pos (max_idPl (ltW xu0)) ler_pexpn2r // nnegrE ?(le_trans (ltW xu0)) // ltW.
Qed.

Lemma pull_low h : \sum_b pos ((size h)%:R * low p - (frequency h b)%:R) * (low p - chance b h) <= 0.
Proof.
pose W n := pos ((size h)%:R * low p - n%:R); have fn b : (frequency h b <= size h)%N by exact: count_size.
rewrite (by_parts W (fun b => low p - chance b h) fn) {1}/W pos0 ?mul0r ?add0r.
  rewrite -oppr_ge0 -sumrN; apply: sumr_ge0 => m _; rewrite -mulrN; apply: mulr_ge0.
    by rewrite subr_ge0; apply: pos_le; rewrite ler_add2l ler_opp2 ler_nat.
  pose A := [set b | frequency h b <= m]%N; rewrite (eq_bigl (fun b => b \in A)) => [|b]; last by rewrite inE.
  by rewrite -sumrN (eq_bigr _ (fun b _ => opprB _ _)) sumrB -expected_chance lowest_first sumr_const -mulr_natr subr_ge0 low_le.
by rewrite subr_le0 ler_pimulr ?ler0n // (le_trans low_le_high high_le1).
Qed.

Lemma pull_high h : \sum_b pos ((frequency h b)%:R - (size h)%:R * high p) * (chance b h - high p) <= 0.
Proof.
pose W n := pos (n%:R - (size h)%:R * high p); have fn b : (frequency h b <= size h)%N by exact: count_size.
rewrite (by_parts_up W (fun b => chance b h - high p) fn) {1}/W pos0 ?mul0r ?add0r; last first.
  by rewrite oppr_le0 mulr_ge0 ?ler0n // (le_trans low_ge0 low_le_high).
rewrite -oppr_ge0 -sumrN; apply: sumr_ge0 => m _; rewrite -mulrN; apply: mulr_ge0.
  by rewrite subr_ge0; apply: pos_le; rewrite ler_add2r ler_nat.
pose A := [set b | frequency h b <= m]%N; rewrite (eq_bigl (fun b => b \in ~: A)) => [|b]; last by rewrite !inE ltnNge.
rewrite -sumrN (eq_bigr _ (fun b _ => opprB _ _)) sumrB -expected_chance sumr_const -mulr_natr subr_ge0.
apply: le_trans (high_ge (~: A)); rewrite setCK -(expected_all h) -(lowest_first m h) !expected_chance.
by rewrite [X in _ <= X - _](big_setID A) /= setTI setTD addrAC subrr add0r.
Qed.

(* The squares of what frequencies lie below t low, or above t high. *)
Section Drift.
Variables (e c : R).
Hypotheses (e1 : `|e| <= 1) (c0 : 0 <= c) (c1 : c <= 1).
Definition off b h := e * ((size h)%:R * c - (frequency h b)%:R).
Hypothesis pull : forall h, \sum_b pos (off b h) * (e * (c - chance b h)) <= 0.
Definition squares h := \sum_b pos (off b h) ^+ 2.

Lemma squares_next h : next p s squares h <= squares h + M%:R.
Proof.
rewrite next_sum; apply: (@le_trans _ _ (\sum_b (2%:R * (pos (off b h) * (e * (c - chance b h))) + (pos (off b h) ^+ 2 + 1)))).
  apply: ler_sum => b _; pose last (h' : history) : R := (b \in (head (set0, set0) h').2)%:R.
  apply: (@le_trans _ _ (next p s (fun h' => (2%:R * pos (off b h)) * - e * last h' + (2%:R * pos (off b h) * (e * c) + (pos (off b h) ^+ 2 + 1))) h)).
    apply: next_le => B S; have -> : off b ((B, S) :: h) = off b h + e * (c - (b \in S)%:R).
      by rewrite /off /= mulrS natrD; ring.
    apply: le_trans (pos_step _ _) _; last by rewrite /last /=; apply/eqW; ring.
    rewrite normrM -[X in _ <= X]mulr1 ler_pmul // ler_norml; case: (b \in S) => /=; rewrite ?subr0 ?c1 ?andbT.
      by rewrite ler_subr_addl subrr c0 ler_subl_addr (le_trans c1) // ler_addl ler01.
    by rewrite (le_trans _ c0) // oppr_le0 ler01.
  by rewrite next_affine (_ : next p s last h = chance b h) //; apply/eqW; ring.
rewrite big_split /= -mulr_sumr big_split /= sumr_const card_ord addrA -[X in _ <= X]add0r -addrA ler_add2r.
by rewrite pmulr_rle0 ?ltr0n.
Qed.

Lemma near b t eps : (0 < t)%N -> 0 < eps -> M%:R <= t%:R * eps ^+ 2 -> e * (c - share p s t b) <= eps.
Proof.
move=> t0 eps0 long; have tR : 0 < t%:R :> R by rewrite ltr0n.
have sq : mean p s t squares <= t%:R * M%:R.
  apply: le_trans (mean_drift t squares_next) _.
  by rewrite /squares big1 ?add0r // => b' _; rewrite /off /= mul0r subrr mulr0 pos0 // expr0n.
rewrite -(ler_pmul2l tR); have -> : t%:R * (e * (c - share p s t b)) = mean p s t (off b).
  rewrite (@mean_eq _ _ (fun h => - e * (frequency h b)%:R + e * (t%:R * c))) => [|h <-]; last by rewrite /off; ring.
  rewrite mean_affine /share; field; exact: lt0r_neq0.
pose a := t%:R * eps / 2%:R; have a0 : 0 < a by rewrite divr_gt0 ?mulr_gt0 ?ltr0n.
have q0 : 0 <= (4%:R * a)^-1 by rewrite invr_ge0 mulr_ge0 ?ler0n // ltW.
apply: (@le_trans _ _ (mean p s t (fun h => (4%:R * a)^-1 * squares h + a))).
  apply: mean_le => h _; apply: (@le_trans _ _ (pos (off b h))); first by rewrite /pos le_maxr lexx.
  apply: (@le_trans _ _ ((4%:R * a)^-1 * pos (off b h) ^+ 2 + a)).
    rewrite -subr_ge0; have -> : (4%:R * a)^-1 * pos (off b h) ^+ 2 + a - pos (off b h) = (pos (off b h) - 2%:R * a) ^+ 2 / (4%:R * a).
      by field; exact: lt0r_neq0.
    by rewrite divr_ge0 ?sqr_ge0 // mulr_ge0 ?ler0n // ltW.
  rewrite ler_add2r; apply: (ler_wpmul2l q0).
  by rewrite /squares (bigD1 b) //= ler_addl; apply: sumr_ge0 => b' _; exact: sqr_ge0.
rewrite mean_affine; apply: (@le_trans _ _ ((4%:R * a)^-1 * (t%:R * (t%:R * eps ^+ 2)) + a)).
  by rewrite ler_add2r; apply: (ler_wpmul2l q0); rewrite (le_trans sq) // ler_wpmul2l ?ler0n.
by apply/eqW; rewrite /a; field; rewrite !lt0r_neq0.
Qed.
End Drift.

(* All shares come as near to these two numbers as one likes. *)
(* Carries UNI-FAIR, UNI-LEAST. *)
Theorem shares_near b t eps : (0 < t)%N -> 0 < eps -> M%:R <= t%:R * eps ^+ 2 ->
  low p - eps <= share p s t b <= high p + eps.
Proof.
move=> t0 eps0 long; have [l0 h1] := (low_ge0, high_le1); have lh := low_le_high; apply/andP; split.
  have pull h : \sum_b pos (off 1 (low p) b h) * (1 * (low p - chance b h)) <= 0.
    by apply: le_trans (pull_low h); apply/eqW/eq_bigr => b' _; rewrite /off !mul1r.
  have := near _ l0 (le_trans lh h1) pull b t0 eps0 long; rewrite normr1 mul1r => /(_ (lexx _)).
  by rewrite !ler_subl_addr addrC.
have pull h : \sum_b pos (off (- 1) (high p) b h) * (- 1 * (high p - chance b h)) <= 0.
  by apply: le_trans (pull_high h); apply/eqW/eq_bigr => b' _; rewrite /off !mulN1r !opprB.
have := near _ (le_trans l0 lh) h1 pull b t0 eps0 long; rewrite normrN1 mulN1r opprB => /(_ (lexx _)).
by rewrite ler_subl_addr addrC.
Qed.

End Least.
End Strategy.

(* The choice of least frequency has the least gap: after enough rounds its gap is at most as much as one likes above that of any
   other way to choose, after any number of rounds. *)
(* Carries MRA-05, UNI-LEAST. *)
Theorem uni_least s s' t t' eps : valid s -> least s -> valid s' -> (0 < t)%N -> (0 < t')%N -> 0 < eps ->
  (4 * M)%:R <= t%:R * eps ^+ 2 -> gap p s t <= gap p s' t' + eps.
Proof.
move=> ok least_s ok' t0 t0' eps0 long.
have gap0 : 0 <= gap p s' t' by rewrite /gap; elim/big_rec: _ => // i x _ x0; rewrite le_maxr x0 orbT.
have half0 : 0 < eps / 2%:R by rewrite divr_gt0 ?ltr0n.
have near b : low p - eps / 2%:R <= share p s t b <= high p + eps / 2%:R.
  apply: shares_near => //; rewrite -(@ler_pmul2l _ 4%:R) ?ltr0n // -natrM (le_trans long) //.
  by apply/eqW; field.
apply: bigmax_le => [|[b b'] _ /=]; first by rewrite addr_ge0 // ltW.
have M0 : (0 < M)%N by case: b => b lt; exact: leq_ltn_trans lt.
apply: (@le_trans _ _ (least_gap p + eps)); last by rewrite ler_add2r gap_ge.
have /andP[_ hb] := near b; have /andP[lb _] := near b'.
by apply: le_trans (ler_sub hb lb) _; apply/eqW; rewrite /least_gap; field.
Qed.
End Law.

(* The paper's rule for one batch of a round: one complete batch of the least frequency is drawn, and k - 1 of the others. *)
Definition lowest h (B : batches) := [set b in B | [forall b' in B, (frequency h b <= frequency h b')%N]].
Definition fair : strategy := fun h B S =>
  if (k <= #|B|)%N
  then if (S \subset B) && (#|S| == k) then #|S :&: lowest h B|%:R / #|lowest h B|%:R / 'C(#|B|.-1, k.-1)%:R else 0
  else (S == set0)%:R.

Lemma lowest_neq0 h (B : batches) : (0 < #|B|)%N -> (0 < #|lowest h B|)%N.
Proof.
case/card_gt0P => b bB; apply/card_gt0P; exists [arg min_(b < b in B) frequency h b]%N.
by rewrite inE; case: arg_minnP => // i iB le; rewrite iB; apply/forall_inP => j; exact: le.
Qed.

Lemma card_with (B : batches) b : (0 < k)%N -> b \in B ->
  #|[set S : batches | [&& S \subset B, #|S| == k & b \in S]]| = 'C(#|B|.-1, k.-1).
Proof.
move=> k0 bB; rewrite (_ : #|B|.-1 = #|B :\ b|); last by rewrite (cardsD1 b B) bB.
have inj : {in [set A : batches | A \subset B :\ b & #|A| == k.-1] &, injective (fun S => b |: S)}.
  move=> S S'; rewrite !inE => /andP[/subsetD1P[_ bS] _] /andP[/subsetD1P[_ bS'] _] e.
  by rewrite -(setU1K bS) e setU1K.
rewrite -cards_draws -(card_in_imset inj); apply: eq_card => S; apply/idP/imsetP => [|[S' + ->]].
  rewrite inE => /and3P[SB /eqP Sk bS]; exists (S :\ b); last by rewrite setD1K.
  by rewrite inE setSD //= -Sk (cardsD1 b S) bS.
rewrite !inE eqxx => /andP[/subsetD1P[SB bS] /eqP Sk]; rewrite subUset sub1set bB SB cardsU1 bS Sk add1n prednK ?eqxx //.
Qed.

Lemma fair_valid : (0 < k)%N -> valid fair.
Proof.
move=> k0 h B; split=> [S||S]; rewrite /fair /choice; case: leqP => kB //; try by case: ifP; rewrite ?eqxx.
- by case: ifP => // _; rewrite !divr_ge0 ?ler0n.
- by rewrite ler0n.
- have B0 := leq_trans k0 kB; rewrite -big_mkcond /= -!mulr_suml.
  have -> : \sum_(S : batches | (S \subset B) && (#|S| == k)) #|S :&: lowest h B|%:R =
      (#|lowest h B| * 'C(#|B|.-1, k.-1))%:R :> R.
    rewrite -natr_sum; congr (_%:R); under eq_bigr => S _.
      rewrite -sum1_card (eq_bigl _ _ (fun b => in_setI b S _)) big_andbC big_mkcondr /=; over.
    rewrite exchange_big /= -sum_nat_const; apply: eq_bigr => b; rewrite inE => /andP[bB _].
    by rewrite -big_mkcondr sum1dep_card -(card_with k0 bB); apply: eq_card => S; rewrite !inE andbA.
  by rewrite natrM mulrAC mulfK ?divff // pnatr_eq0 -lt0n ?lowest_neq0 // bin_gt0 -ltnS !prednK.
- rewrite (bigD1 set0) //= eqxx big1 ?addr0 // => S /negPf ->; by [].
- by case: (S == set0); rewrite ?eqxx.
Qed.
End Fairness.

(* With the rates 0, 0, 1/2 and 1/2 of four batches, of which two are chosen, the paper's rule has the gap 1/6 or more after any
   number of rounds, and the least gap is 0. *)
Section Example.
Local Notation batches := {set 'I_4}.
Local Notation drawn := (@fair [realFieldType of rat] 4 2).
Definition rare (B : batches) : rat := if [set b : 'I_4 | b < 2]%N \subset B then 4%:R^-1 else 0.

Let o n (lt : (n < 4)%N) : 'I_4 := Ordinal lt.
Let st (xy : bool * bool) : batches := [set b : 'I_4 | [|| b < 2, (b == 2 :> nat) && xy.1 | (b == 3 :> nat) && xy.2]%N].

Lemma rare_sum (phi : batches -> rat) :
  \sum_B rare B * phi B = 4%:R^-1 * (phi (st (true, true)) + phi (st (true, false)) + phi (st (false, true)) + phi (st (false, false))).
Proof.
rewrite (bigID (fun B : batches => [set b : 'I_4 | b < 2]%N \subset B)) /= [X in _ + X]big1 ?addr0; last first.
  by move=> B /negPf no; rewrite /rare no mul0r.
rewrite (reindex_onto st (fun B : batches => (@o 2 isT \in B, @o 3 isT \in B))); last first.
  move=> B /subsetP sub; apply/setP => b; rewrite inE /=; case: (boolP (b < 2)%N) => [lt|ge] /=.
    by rewrite sub // inE.
  case: (eqVneq b (@o 2 isT)) => [->|n2] /=; first by rewrite orbF.
  case: (eqVneq b (@o 3 isT)) => [->|n3] //=.
  by case: b ge n2 n3 => -[|[|[|[|b]]]] // lt _; rewrite -val_eqE.
have all xy : ([set b : 'I_4 | b < 2]%N \subset st xy) && ((@o 2 isT \in st xy, @o 3 isT \in st xy) == xy).
  case: xy => x y; rewrite !inE /= orbF eqxx andbT; apply/subsetP => b; by rewrite !inE => ->.
rewrite (eq_bigl _ _ all) -(pair_bigA _ (fun x y => rare (st (x, y)) * phi (st (x, y)))) /= !big_bool /=.
have quarter xy : rare (st xy) = 4%:R^-1 by rewrite /rare; have /andP[-> _] := all xy.
by rewrite !quarter; ring.
Qed.

Lemma rare_law : law rare.
Proof.
split=> [B|]; first by rewrite /rare; case: ifP.
by have := rare_sum (fun=> 1); under eq_bigr do rewrite mulr1; move=> ->.
Qed.

Lemma card4 (D : batches) : #|D| = ((@o 0 isT \in D) + (@o 1 isT \in D) + (@o 2 isT \in D) + (@o 3 isT \in D))%N.
Proof.
rewrite -sum1_card big_mkcond !big_ord_recl big_ord0 /= addn0 !addnA.
by do !congr (_ + _)%N; rewrite -[(if _ then _ else _)]/(nat_of_bool _); congr (nat_of_bool (_ \in D)); exact: val_inj.
Qed.
Lemma most_rare (A : batches) : #|A|%:R / 2%:R <= most 2 rare A.
Proof.
rewrite /most big_mkcond /=; under eq_bigr => B _.
  rewrite (_ : (if _ then _ else _) = rare B * (if (2 <= #|B|)%N then (minn #|A :&: B| 2)%:R else 0)); last by case: ifP; rewrite ?mulr0.
  over.
rewrite rare_sum; have big xy : (1 < #|st xy|)%N by rewrite card4 !inE.
have half (n : nat) : n%:R / 2%:R = 4%:R^-1 * (2 * n)%:R :> rat by rewrite natrM; field.
rewrite !big -!natrD half.
rewrite ler_wpmul2l // ler_nat !card4 !inE /= !andbT !andbF.
by do 4![case: (_ \in A)].
Qed.

Lemma most_rare_all : most 2 rare setT <= 2%:R.
Proof.
have [_ one] := rare_law; rewrite -[X in _ <= X]mul1r -[X in _ <= X * _]one mulr_suml [X in _ <= X](bigID (fun B : batches => 2 <= #|B|)%N) /=.
apply: ler_paddr; first by apply: sumr_ge0 => B _; rewrite mulr_ge0 ?ler0n ?(proj1 rare_law).
by apply: ler_sum => B _; rewrite ler_wpmul2l ?(proj1 rare_law) // ler_nat geq_minr.
Qed.

Lemma rare_gap : least_gap 2 rare = 0.
Proof.
apply: le_anti; rewrite subr_ge0 low_le_high andbT.
have all := most_rare_all; have c4 : #|[set: 'I_4]|%:R = 4%:R :> rat by rewrite cardsT card_ord.
have lo : 2%:R^-1 <= low 2 rare.
  have le (A : batches) : A != set0 -> 2%:R^-1 <= most 2 rare A / #|A|%:R.
    by move=> A0; rewrite ler_pdivl_mulr ?card_gt0R // mulrC most_rare.
  apply: le_bigmin => //; rewrite -c4; apply: le; rewrite -card_gt0 cardsT card_ord //.
have hi : high 2 rare <= 2%:R^-1.
  have le (A : batches) : A != set0 -> (most 2 rare setT - most 2 rare (~: A)) / #|A|%:R <= 2%:R^-1.
    move=> A0; rewrite ler_pdivr_mulr ?card_gt0R // ler_subl_addr (le_trans all) //.
    apply: (@le_trans _ _ (2%:R^-1 * #|A|%:R + #|~: A|%:R / 2%:R)); last by rewrite ler_add2l most_rare.
    rewrite [_ / 2%:R]mulrC -mulrDr -natrD cardsC card_ord; by apply/eqW; field.
  apply: bigmax_le => //; have := le setT; rewrite setCT most0 subr0 -c4; apply.
  by rewrite -card_gt0 cardsT card_ord.
by rewrite subr_le0 (le_trans hi).
Qed.

(* Of the batches that are complete half of the time at most 5/6 are in a round, in the mean. *)
Let Q : batches := [set b : 'I_4 | 2 <= b]%N.

Lemma rare_expected h : expected rare drawn Q h <= 5%:R / 6%:R.
Proof.
have ok := @fair_valid [realFieldType of rat] 4 2 isT; rewrite /expected rare_sum.
have le xy : \sum_S drawn h (st xy) S * #|Q :&: S|%:R <= #|Q :&: st xy|%:R.
  rewrite -[X in _ <= X]mul1r -[X in _ <= X * _](s_sum ok h (st xy)) mulr_suml; apply: ler_sum => S _.
  case: (eqVneq (drawn h (st xy) S) 0) => [->|/(s_choice ok)]; first by rewrite !mul0r.
  have big : (1 < #|st xy|)%N by rewrite card4 !inE.
  rewrite /choice big => /andP[sub _]; rewrite ler_wpmul2l ?(s_ge0 ok) // ler_nat subset_leq_card // setIS //.
have [[l1 l2] l3] := (le (true, false), le (false, true), le (false, false)).
have l0 : \sum_S drawn h (st (true, true)) S * #|Q :&: S|%:R <= 4%:R / 3%:R.
  have cT : #|st (true, true)| = 4%N by rewrite card4 !inE.
  apply: (@le_trans _ _ (1 + drawn h (st (true, true)) Q)).
    rewrite -[X in X + _](s_sum ok h (st (true, true))) [X in _ <= _ + X](_ : _ = \sum_S drawn h (st (true, true)) S * (S == Q)%:R); last first.
      by rewrite (bigD1 Q) //= eqxx mulr1 big1 ?addr0 // => S /negPf ->; rewrite mulr0.
    rewrite -big_split /=; apply: ler_sum => S _; rewrite -[X in _ <= X + _]mulr1 -mulrDr.
    case: (eqVneq (drawn h (st (true, true)) S) 0) => [->|/(s_choice ok)]; first by rewrite !mul0r.
    rewrite /choice cT /= => /andP[_ /eqP S2]; rewrite ler_wpmul2l ?(s_ge0 ok) // -mulrS ler_nat.
    case: (eqVneq S Q) => [->|SQ]; first by rewrite setIid card4 !inE.
    have le2 : (#|Q :&: S| <= 2)%N by have := subset_leq_card (subsetIr Q S); rewrite S2.
    rewrite -ltnS ltn_neqAle le2 andbT; apply: contra SQ => /eqP e.
    have cQ : #|Q| = 2%N by rewrite card4 !inE.
    have SI : Q :&: S = S by apply/eqP; rewrite eqEcard subsetIr S2 e.
    have QI : Q :&: S = Q by apply/eqP; rewrite eqEcard subsetIl cQ e.
    by rewrite -SI QI.
  rewrite /fair cT /=; case: ifP => _; last by rewrite addr0 ler_pdivl_mulr // mul1r ler_nat.
  have L0 : (0 < #|lowest h (st (true, true))|)%N by rewrite lowest_neq0 // cT.
  rewrite bin1 -ler_subr_addl ler_pdivr_mulr ?ltr0n // ler_pdivr_mulr ?ltr0n // (_ : (4%:R / 3%:R - 1) * 3%:R = 1) ?mul1r //.
  by rewrite ler_nat subset_leq_card // subsetIr.
move: l1 l2 l3; rewrite !card4 !inE /= => l1 l2 l3.
rewrite -(@ler_pmul2l _ 4%:R) // mulVKf //; apply: (le_trans (ler_add (ler_add (ler_add l0 l1) l2) l3)).
by apply/eqW; field.
Qed.

Lemma half_of (F : realFieldType) (g : F) : 2%:R - 5%:R / 6%:R - 5%:R / 6%:R <= g + g -> 6%:R^-1 <= g.
Proof.
move=> le2; rewrite -(@ler_pmul2l _ 2%:R) ?ltr0n // [X in _ <= X]mulr_natl mulr2n; apply: le_trans le2.
by apply/eqW; field.
Qed.

(* Carries UNI-LEAST. *)
Theorem fair_misses t : (0 < t)%N ->
  [/\ law rare, valid 2 drawn, 6%:R^-1 <= gap rare drawn t & least_gap 2 rare = 0].
Proof.
move=> t0; have [lawr ok] := (rare_law, @fair_valid [realFieldType of rat] 4 2 isT); split=> //; last exact: rare_gap.
have few : \sum_(b in Q) share rare drawn t b <= 5%:R / 6%:R.
  rewrite (shares_in lawr ok) // ler_pdivr_mulr ?ltr0n // mulrC.
  apply: le_trans (mean_drift lawr ok (c := 5%:R / 6%:R) t _) _ => [h|]; last by rewrite /number big1 ?add0r.
  by rewrite (number_next lawr ok) ler_add2l rare_expected.
have all : 2%:R <= \sum_(b in [set: 'I_4]) share rare drawn t b.
  have := shares_ge lawr ok setT t0; rewrite setCT most0 subr0; apply: le_trans.
  by have := most_rare setT; rewrite cardsT card_ord; apply: le_trans; apply/eqW; field.
move: few all; rewrite big_mkcond [X in _ -> _ <= X -> _]big_mkcond !big_ord_recl !big_ord0 !inE /= => few all.
have le b b' : share rare drawn t b - share rare drawn t b' <= gap rare drawn t.
  exact: (@le_bigmax _ _ predT (fun bb => share rare drawn t bb.1 - share rare drawn t bb.2) 0 (b, b')).
have := ler_add (le ord0 (lift ord0 (lift ord0 ord0))) (le (lift ord0 ord0) (lift ord0 (lift ord0 (lift ord0 ord0)))).
move: few all; set s0 := share _ _ _ ord0; set s1 := share _ _ _ _; set s2 := share _ _ _ _; set s3 := share _ _ _ _.
rewrite !add0r addr0 => few all two.
have diff : s0 - s1 + (s3 - s2) = s0 + (s3 + (s1 + s2)) - (s1 + s2) - (s1 + s2) by ring.
rewrite diff in two; have := le_trans (ler_sub (ler_sub all few) few) two.
exact: half_of.
Qed.
End Example.

(* A server that may skip rounds can have a smaller gap: of two batches, the second one complete in a quarter of the rounds, it
   takes one at random when both are complete, and else none.  Each is in an eighth of the rounds; the least gap is 1/2. *)
Section Skip.
Local Notation batches := {set 'I_2}.
Definition quarter (B : batches) : rat := if B == setT then 4%:R^-1 else if B == [set ord0] then 3%:R / 4%:R else 0.
Definition skips : strategy [realFieldType of rat] 2 := fun h B S =>
  if B == setT then (#|S| == 1%N)%:R / 2%:R else (S == set0)%:R.

Let one_neq : [set ord0] != setT :> batches. Proof. by apply/eqP => /setP/(_ (lift ord0 ord0)); rewrite !inE. Qed.

Lemma quarter_sum (phi : batches -> rat) : \sum_B quarter B * phi B = 4%:R^-1 * phi setT + 3%:R / 4%:R * phi [set ord0].
Proof.
rewrite (bigD1 setT) //= (bigD1 [set ord0]) ?one_neq //= big1 ?addr0 => [|B /andP[/negPf nT /negPf n0]].
  by rewrite /quarter eqxx (negPf one_neq) eqxx.
by rewrite /quarter nT n0 mul0r.
Qed.

Lemma ones_sum (phi : batches -> rat) : \sum_(S : batches) (#|S| == 1%N)%:R / 2%:R * phi S = (phi [set ord0] + phi [set lift ord0 ord0]) / 2%:R.
Proof.
have ne : [set lift ord0 ord0] != [set ord0] :> batches by apply/eqP => /set1_inj.
rewrite (bigD1 [set ord0]) //= (bigD1 [set lift ord0 ord0]) ?ne //= big1 ?addr0 => [|S /andP[n0 n1]].
  by rewrite !cards1 !eqxx !mul1r mulrDl ![2%:R^-1 * _]mulrC.
rewrite (_ : (#|S| == 1%N) = false) ?mul0r //; apply/negbTE; apply: contra n0 => /cards1P [b Sb].
move: n1; rewrite Sb; case: (unliftP ord0 b) => [k ->|-> //]; by rewrite (ord1 k) eqxx.
Qed.

Lemma skips_sum h B : \sum_(S : batches) skips h B S = 1.
Proof.
rewrite /skips; case: (B == setT); last by rewrite (bigD1 set0) //= eqxx big1 ?addr0 // => S /negPf ->.
by under eq_bigr do rewrite -[_ / _]mulr1; rewrite (ones_sum (fun=> 1)).
Qed.

Lemma skips_share t b : (0 < t)%N -> share quarter skips t b = 8%:R^-1.
Proof.
move=> t0; suff gen h : iter t (next quarter skips) (fun h => (frequency h b)%:R) h = (frequency h b)%:R + t%:R / 8%:R.
  by rewrite /share /mean gen /frequency /= add0r mulrAC divff ?mul1r // pnatr_eq0 -lt0n.
elim: t {t0} h => [|t IH] h; first by rewrite mul0r addr0.
rewrite iterS {1}/next quarter_sum /skips eqxx (negPf one_neq) ones_sum (bigD1 set0) //= eqxx big1 ?addr0 => [|S /negPf ->]; last by rewrite mul0r.
rewrite mul1r !IH /frequency /= !inE !natrD.
have -> : (b == ord0)%:R = 1 - (b == lift ord0 ord0)%:R :> rat.
  by case: (unliftP ord0 b) => [k ->|->] //; rewrite (ord1 k) // subrr.
by rewrite [t.+1%:R]mulrS; field.
Qed.

(* Carries UNI-FAIR. *)
Theorem skip_needed t : (0 < t)%N ->
  [/\ law quarter,
      forall h B, [/\ forall S, 0 <= skips h B S, \sum_S skips h B S = 1 & forall S, skips h B S != 0 -> S = set0 \/ choice 1 B S],
      gap quarter skips t = 0 & 2%:R^-1 <= least_gap 1 quarter].
Proof.
move=> t0; split=> [|h B||].
- split=> [B|]; first by rewrite /quarter; do 2?case: ifP.
  by under eq_bigr do rewrite -[quarter _]mulr1; rewrite (quarter_sum (fun=> 1)).
- split=> [S||S]; rewrite /skips; first by case: (B == setT); rewrite ?divr_ge0 ?ler0n.
    exact: (skips_sum h B).
  case: (eqVneq B setT) => [->|_]; last by case: (S =P set0) => [->|]; [left | rewrite eqxx].
  by case: (#|S| =P 1%N) => [S1 _|_]; [right; rewrite /choice cardsT card_ord subsetT S1 eqxx | rewrite mul0r eqxx].
- apply/le_anti/andP; split; last by apply: le_trans (le_bigmax _ _ (isT : predT (ord0, ord0))); rewrite /= subrr.
  by apply: bigmax_le => // -[b b'] _; rewrite !skips_share // subrr.
have most1 A : most 1 quarter A = 4%:R^-1 * (0 < #|A|)%N%:R + 3%:R / 4%:R * (ord0 \in A)%:R.
  rewrite /most big_mkcond /= (eq_bigr (fun B => quarter B * (if (1 <= #|B|)%N then (minn #|A :&: B| 1)%:R else 0))).
    rewrite quarter_sum cardsT card_ord cards1 /= setIT; congr (_ * _%:R + _ * _%:R); first by case: #|A| => // n; rewrite /minn ltnS; case: n.
    case: (boolP (ord0 \in A)) => [in0|n0]; first by rewrite (setIidPr _) ?cards1 // sub1set.
    by rewrite (_ : A :&: _ = set0) ?cards0 //; apply/setP => k; rewrite !inE; apply: contraNF n0 => /andP[kA /eqP <-].
  by move=> B _; case: ifP; rewrite ?mulr0.
have c0 : #|[set ord0] : batches| = 1%N by rewrite cards1.
have lo : low 1 quarter <= 4%:R^-1.
  apply: le_trans (bigmin_le (fun A : batches => most 1 quarter A / #|A|%:R) _ (_ : [set lift ord0 ord0] != set0)) _.
    by rewrite -card_gt0 cards1.
  by rewrite most1 cards1 inE /= mulr0 addr0 mulr1 divr1.
have hi : 3%:R / 4%:R <= high 1 quarter.
  apply: le_trans _ (le_bigmax (fun A : batches => (most 1 quarter setT - most 1 quarter (~: A)) / #|A|%:R) _ (_ : [set ord0] != set0)).
    rewrite !most1 cards1 cardsT card_ord !inE eqxx /= divr1 cardsCs setCK cards1 card_ord /= !mulr1 mulr0 addr0 [X in _ <= X - _]addrC addrK //.
  by rewrite -card_gt0 cards1.
apply: le_trans (ler_sub hi lo); by [].
Qed.
End Skip.
