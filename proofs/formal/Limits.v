(* Where the theorems end: what happens without a premise.  Claims HET-EQ5, MRS-REM2A. *)
From mathcomp Require Import all_ssreflect all_algebra.
From secagg Require Import Counting Masks Code MultiRound SecAggPrivacy BasaPrivacy Instances.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory. Local Open Scope ring_scope.

(* A user with the point 0 has the first sub-mask in clear, whatever the noise is. *)
(* Carries MDS-02, BAS-EQ6. *)
Theorem point_zero_leaks (F : fieldType) N (a : 'I_N -> F) K T L (Z : 'M[F]_(K.+1, L)) (n : 'M[F]_(T, L)) j :
  a j = 0 -> share a (col_mx Z n) j = row ord0 Z.
Proof.
move=> a0; rewrite share_col a0 exprS mul0r scale0r addr0 /share big_ord_recl expr0 scale1r big1 ?addr0 // => k _.
by rewrite a0 exprS mul0r scale0r.
Qed.

(* HET-EQ5: with the sign - what remains of the dropped users' masks stands twice in the sum. *)
Section Sign.
Variables (G : zmodType) (N : nat) (nb : rel 'I_N) (nb_sym : symmetric nb) (x b : 'I_N -> G) (s : 'I_N -> 'I_N -> G).
Definition missing (U2 U3 : {set 'I_N}) : G :=
  \sum_(i in U2 :\: U3) (\sum_(j in U3 | nb i j && (i < j)%N) s i j - \sum_(j in U3 | nb i j && (j < i)%N) s j i).
(* Carries SAG-29, HET-EQ5. *)
Theorem wrong_sign (U2 U3 : {set 'I_N}) : U3 \subset U2 ->
  \sum_(i in U3) (masked nb x b s U2 i - b i) - missing U2 U3 = \sum_(i in U3) x i - missing U2 U3 *+ 2.
Proof.
move=> sub; rewrite -(secagg_correct nb_sym x b s sub) /unmasked -/(missing U2 U3).
by rewrite mulr2n opprD addrA addrK.
Qed.
End Sign.

(* Selection without batches: when each set of K of N users, 0 < K < N, was in some round, every user is recoverable. *)
Section Random.
Variables (N K J : nat) (S : 'I_J -> {set 'I_N}).
Hypotheses (K_gt0 : (0 < K)%N) (K_lt_N : (K < N)%N) (all_sets : forall A : {set 'I_N}, #|A| = K -> exists t, S t = A).
Definition log : 'M[rat]_(J, N) := \matrix_(t, i) (i \in S t)%:R.
Definition spanned (v : 'rV[rat]_N) := exists z, z *m log = v.

Lemma spannedB u v : spanned u -> spanned v -> spanned (u - v).
Proof. by move=> [z <-] [z' <-]; exists (z - z'); rewrite mulmxBl. Qed.
Lemma spannedD u v : spanned u -> spanned v -> spanned (u + v).
Proof. by move=> [z <-] [z' <-]; exists (z + z'); rewrite mulmxDl. Qed.
Lemma spannedZ c v : spanned v -> spanned (c *: v).
Proof. by move=> [z <-]; exists (c *: z); rewrite -scalemxAl. Qed.
Lemma spanned_sum (I : finType) (P : pred I) (v : I -> 'rV[rat]_N) :
  (forall i, P i -> spanned (v i)) -> spanned (\sum_(i | P i) v i).
Proof. by move=> all; elim/big_ind: _ => //; [exists 0; rewrite mul0mx | exact: spannedD]. Qed.

Definition ind (A : {set 'I_N}) : 'rV[rat]_N := \row_i (i \in A)%:R.
Lemma spanned_set (A : {set 'I_N}) : #|A| = K -> spanned (ind A).
Proof.
move=> /all_sets [t <-]; exists (delta_mx 0 t); rewrite -rowE; apply/rowP => i; by rewrite !mxE.
Qed.

Lemma spanned_diff i j : i != j -> spanned (delta_mx 0 i - delta_mx 0 j).
Proof.
move=> ij; pose R := ~: [set i; j]; pose s := take K.-1 (enum R).
have cR : #|R| = (N - 2)%N by rewrite cardsCs setCK cards2 ij card_ord.
have szs : size s = K.-1.
  by rewrite size_takel // -cardE cR leq_subRL; [rewrite addnC addn2 prednK | apply: leq_trans K_lt_N].
have us : uniq s by rewrite take_uniq ?enum_uniq.
have out k : k \in s -> (k != i) && (k != j) by move/mem_take; rewrite mem_enum !inE negb_or.
have card k : (k == i) || (k == j) -> #|k |: [set l in s]| = K.
  move=> kij; rewrite cardsU1 cardsE (card_uniqP us) szs inE.
  have -> : k \notin s by apply/negP => /out /andP[/negPf k1 /negPf k2]; move: kij; rewrite k1 k2.
  by rewrite add1n prednK.
have -> : delta_mx 0 i - delta_mx 0 j = ind (i |: [set l in s]) - ind (j |: [set l in s]).
  apply/rowP => k; rewrite !mxE !inE eqxx /=.
  case: (boolP (k \in s)) => [/out /andP[/negPf-> /negPf->]|_]; rewrite ?orbT ?orbF ?subrr //.
by apply: spannedB; apply: spanned_set; apply: card; rewrite eqxx ?orbT.
Qed.

(* Carries MRA-17, MRS-REM2A, MRS-REM11. *)
Theorem random_selection_leaks i : recoverable log i.
Proof.
have [A iA cA] : exists2 A : {set 'I_N}, i \in A & #|A| = K.
  pose s := take K.-1 (enum (~: [set i])).
  have szs : size s = K.-1.
    rewrite size_takel // -cardE cardsCs setCK cards1 card_ord subn1 -ltnS prednK // prednK; first exact: ltnW.
    exact: leq_trans K_gt0 (ltnW K_lt_N).
  exists (i |: [set l in s]); first by rewrite !inE eqxx.
  rewrite cardsU1 cardsE (card_uniqP _) ?take_uniq ?enum_uniq // szs inE.
  have -> : i \notin s by apply/negP => /mem_take; rewrite mem_enum !inE eqxx.
  by rewrite add1n prednK.
have K0 : (K%:R : rat) != 0 by rewrite pnatr_eq0 -lt0n.
have -> : recoverable log i = spanned (delta_mx 0 i) by [].
have -> : delta_mx 0 i = K%:R^-1 *: (ind A + \sum_(j in A | j != i) (delta_mx 0 i - delta_mx 0 j)).
  have -> : ind A = \sum_(j in A) delta_mx 0 j.
    apply/rowP => k; rewrite mxE summxE; case: (boolP (k \in A)) => kA.
      by rewrite (bigD1 k) //= mxE !eqxx big1 ?addr0 // => j /andP[_]; rewrite eq_sym => /negPf kj; rewrite mxE kj ?andbF.
    rewrite big1 // => j jA; rewrite mxE; case: (eqVneq k j) => [kj|_]; last by rewrite andbF.
    by move: kA; rewrite kj jA.
  rewrite (bigD1 i iA) /= -addrA -big_split /=; under eq_bigr do rewrite addrC subrK.
  have -> : delta_mx 0 i + \sum_(j in A | j != i) delta_mx 0 i = \sum_(j in A) delta_mx 0 i :> 'rV[rat]_N.
    by rewrite [RHS](bigD1 i).
  by rewrite sumr_const cA -scaler_nat scalerA mulVf // scale1r.
apply: spannedZ; apply: spannedD; first exact: spanned_set.
by apply: spanned_sum => j /andP[_ ji]; apply: spanned_diff; rewrite eq_sym.
Qed.
End Random.

(* One counterexample for each premise: without it the theorem is false. *)
Section Needed.
Variables (G : finZmodType) (g : G).
Hypothesis g_neq0 : g != 0.
Let only_g (i j : 'I_2) : G := g.

Lemma sum2 (P : pred 'I_2) (f : 'I_2 -> G) :
  \sum_(j | P j) f j = (if P ord0 then f ord0 else 0) + (if P ord_max then f ord_max else 0).
Proof. by rewrite big_mkcond big_ord_recl big_ord1; congr (_ + _); rewrite (_ : lift _ _ = ord_max) //; apply: val_inj. Qed.

(* secagg_correct: neighbours are neighbours of each other. *)
(* Carries SAG-03. *)
Theorem symmetric_needed : exists nb : rel 'I_2,
  unmasked nb (fun=> 0) only_g setT setT (masked nb (fun=> 0) (fun=> 0) only_g setT) != \sum_(i in (setT : {set 'I_2})) 0.
Proof.
exists (fun i j => (i < j)%N); rewrite /unmasked /masked setDv big_set0 addr0 big1_eq !sum2 !inE /= ?sum2 ?inE /=.
by rewrite /only_g ?(add0r, addr0, subr0).
Qed.

(* secagg_correct: survivors are among those who shared. *)
(* Carries SAG-16. *)
Theorem survivors_shared_needed : exists U2 U3 : {set 'I_2},
  unmasked (fun=> predT) (fun=> 0) only_g U2 U3 (masked (fun=> predT) (fun=> 0) (fun=> 0) only_g U2) != \sum_(i in U3) 0.
Proof.
exists [set ord0], setT; rewrite /unmasked /masked big1_eq (_ : _ :\: _ = set0) ?big_set0 ?addr0; last first.
  by apply/setP => i; rewrite !inE.
rewrite !sum2 !inE /= ?sum2 ?inE /=; by rewrite /only_g ?(add0r, addr0, subr0, sub0r, oppr0, oppr_eq0).
Qed.
End Needed.

(* recovery, t_privacy: points are distinct. *)
(* Carries MDS-02, BAS-EQ6. *)
Theorem distinct_needed (F : fieldType) : exists M M' : 'M[F]_(2, 1),
  (forall j : 'I_2, share (fun=> 1) M j = share (fun=> 1) M' j) /\ M != M'.
Proof.
exists (\matrix_(i, j) (if i == 0 then 1 else - 1)), 0; split=> [j|]; last first.
  by apply/eqP => /matrixP /(_ 0 0) /eqP; rewrite !mxE oner_eq0.
apply/rowP => l; rewrite /share !big_ord_recl !big_ord0 !expr1n !scale1r !mxE /=; by rewrite !addr0 subrr.
Qed.

(* recovery, one_shot: fewer than U shares do not determine what was encoded. *)
(* Carries MDS-07, BAS-ONESHOT. *)
Theorem fewer_shares (F : fieldType) N (a : 'I_N -> F) U L (A : {set 'I_N}) : (#|A| < U)%N -> (0 < L)%N ->
  exists2 M : 'M[F]_(U, L), M != 0 & forall j, j \in A -> share a M j = 0.
Proof.
move=> AU L0; pose p := \prod_(b <- [seq a j | j <- enum A]) ('X - b%:P).
have szp : size p = #|A|.+1 by rewrite /p size_prod_XsubC size_map cardE.
exists (\matrix_(k, l) p`_k) => [|j jA].
  apply/eqP => /matrixP /(_ (Ordinal AU) (Ordinal L0)) /eqP; rewrite !mxE /= -[#|A|]/(#|A|.+1.-1) -szp -/(lead_coef p).
  by rewrite (monicP (monic_prod_XsubC _ _ _)) oner_eq0.
apply/rowP => l; rewrite /share summxE mxE; transitivity p.[a j].
  rewrite (@horner_coef_wide _ U) ?szp //; by apply: eq_bigr => k _; rewrite !mxE mulrC.
by apply/rootP; rewrite /p root_prod_XsubC map_f // mem_enum.
Qed.

(* lightsecagg: with q = N the last user has the point 0, and with T = U nothing is encoded. *)
(* Carries MDS-01, BAS-EQ6. *)
Theorem q_above_N_needed q : prime q -> exists j : 'I_q, point q j = 0.
Proof.
move=> pq; have lt : (q.-1 < q)%N by rewrite prednK // prime_gt0.
by exists (Ordinal lt); rewrite /point /= prednK ?prime_gt0 // -(char_Fp_0 pq).
Qed.

(* Carries MDS-01, BAS-UT. *)
Theorem U_above_T_needed (F : fieldType) d L : (0 < d)%N -> ~ injective (@layout F d 0 L).
Proof.
case: d => [//|d _ inj]; have same : layout 0 L (0 : 'rV[F]_d.+1) = layout 0 L (const_mx 1 : 'rV[F]_d.+1).
  by apply/matrixP => k; case: k.
by have /rowP /(_ ord0) /eqP := inj _ _ same; rewrite !mxE eq_sym oner_eq0.
Qed.

(* secagg_exactly, lightsecagg_exactly, basa_exactly: the uploads of those in the sum came.  None comes out without. *)
(* Carries SAG-17. *)
Theorem uploads_needed (G : finZmodType) (g : G) : g != 0 ->
  ~ tells (SecAggPrivacy.view (G := G) (N := 1) (fun=> predT) set0 setT set0) (SecAggPrivacy.allowed (fun=> predT) setT set0).
Proof.
move=> g0 tel; pose r : SecAggPrivacy.secret G 1 := (0, 0).
have [x xE] : exists x : SecAggPrivacy.input G 1, forall j, x j = 0 by exists [ffun=> 0] => j; rewrite ffunE.
have [x' x'E] : exists x : SecAggPrivacy.input G 1, forall j, x j = g by exists [ffun=> g] => j; rewrite ffunE.
have same : SecAggPrivacy.view (fun=> predT) set0 setT set0 x r = SecAggPrivacy.view (fun=> predT) set0 setT set0 x' r.
  by congr (_, _, _, _); apply/ffunP => i; rewrite ![LHS]ffunE ![RHS]ffunE inE.
have [_ /ffunP /(_ ord0)] := tel _ _ _ _ same; rewrite !ffunE /SecAggPrivacy.H setD0 inE.
rewrite (bigD1 ord0) ?[X in _ = X](bigD1 ord0) /=; try by rewrite !inE connect0.
by rewrite !big1 => [|i /andP[_]|i /andP[_]]; rewrite ?(ord1 i) ?eqxx // xE x'E !addr0 => /esym/eqP; exact/negP.
Qed.

(* Carries BAA-14. *)
Theorem accepted_uploads_needed (G : finZmodType) (g : G) : g != 0 ->
  ~ tells (BasaPrivacy.view (G := G) (P := 1) setT set0 set0) (BasaPrivacy.allowed setT set0).
Proof.
move=> g0 tel; pose r : BasaPrivacy.secret G 1 := (0, 0).
have [x xE] : exists x : BasaPrivacy.input G 1, forall j, x j = 0 by exists [ffun=> 0] => j; rewrite ffunE.
have [x' x'E] : exists x : BasaPrivacy.input G 1, forall j, x j = g by exists [ffun=> g] => j; rewrite ffunE.
have same : BasaPrivacy.view setT set0 set0 x r = BasaPrivacy.view setT set0 set0 x' r.
  by congr (_, _, _, _); apply/ffunP => i; rewrite ![LHS]ffunE ![RHS]ffunE inE.
have [_] := tel _ _ _ _ same; rewrite setD0; under eq_bigl do rewrite inE; under [RHS]eq_bigl do rewrite inE.
by rewrite !big_ord1 xE x'E => /esym/eqP; exact/negP.
Qed.

(* nobody_recoverable: a user that is alone in its batch is recoverable. *)
(* Carries MRA-17, UNI-BATCHES. *)
Theorem company_needed (F : fieldType) N (i : 'I_N) : recoverable (1%:M : 'M[F]_N) i.
Proof. by exists (delta_mx 0 i); rewrite mulmx1. Qed.
