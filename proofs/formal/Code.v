(* The code that shares a mask (spec/conventions.md, sections 3 and 11).  Claim UNI-SHAMIR. *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section Code.
Variables (F : fieldType) (N : nat) (a : 'I_N -> F).
Hypothesis a_inj : injective a.                      (* MDS-02: the points are distinct *)

(* The share of user j: the rows M_0 ... M_(U-1), with the powers of the point of j (MDS-04). *)
Definition share U L (M : 'M[F]_(U, L)) (j : 'I_N) : 'rV[F]_L := \sum_(k < U) a j ^+ k *: row k M.

Lemma shareD U L (M M' : 'M[F]_(U, L)) j : share (M + M') j = share M j + share M' j.
Proof. by rewrite /share -big_split; apply: eq_bigr => k _; rewrite linearD scalerDr. Qed.

Lemma share0 U L j : share (0 : 'M[F]_(U, L)) j = 0.
Proof. by rewrite /share big1 // => k _; rewrite linear0 scaler0. Qed.

Lemma shareZ U L c (M : 'M[F]_(U, L)) j : share (c *: M) j = c *: share M j.
Proof. by rewrite /share scaler_sumr; apply: eq_bigr => k _; rewrite linearZ /= !scalerA mulrC. Qed.

Lemma shareN U L (M : 'M[F]_(U, L)) j : share (- M) j = - share M j.
Proof. by apply/eqP; rewrite -addr_eq0 -shareD addNr share0. Qed.

(* MDS-06: sums of shares are shares of the sum, so one decoding recovers a sum of masks. *)
(* Carries MDS-06, BAS-ONESHOT. *)
Lemma share_sum U L (I : Type) (r : seq I) (P : pred I) (M : I -> 'M[F]_(U, L)) j :
  share (\sum_(i <- r | P i) M i) j = \sum_(i <- r | P i) share (M i) j.
Proof. by apply: (big_morph (fun M => share M j)) => [M1 M2|]; rewrite ?shareD ?share0. Qed.

(* A matrix of U rows whose shares at U users, or more, are zero is zero.  Nothing but the number of roots is needed. *)
Lemma shares_zero U L (M : 'M[F]_(U, L)) (A : {set 'I_N}) :
  (U <= #|A|)%N -> (forall j, j \in A -> share M j = 0) -> M = 0.
Proof.
move=> leU zero; apply/matrixP => k l; rewrite mxE.
pose p : {poly F} := \poly_(k < U) (if insub k is Some k' then M k' l else 0).
have coefp (k' : 'I_U) : p`_k' = M k' l by rewrite coef_poly ltn_ord valK.
suff p0 : p = 0 by rewrite -coefp p0 coef0.
apply: (@roots_geq_poly_eq0 _ p [seq a j | j <- enum A]).
- apply/allP => y /mapP[j]; rewrite mem_enum => jA ->; rewrite /root horner_poly.
  have : share M j 0 l = 0 by rewrite zero // mxE.
  rewrite /share summxE => H; apply/eqP; rewrite -[RHS]H.
  by apply: eq_bigr => i _; rewrite valK !mxE mulrC.
- by rewrite map_inj_uniq ?enum_uniq.
- by rewrite size_map -cardE (leq_trans (size_poly _ _)).
Qed.

(* MDS-05: any U shares, or more, determine what was encoded. *)
(* Carries MDS-04, MDS-05, BAS-EQ6, BAS-ONESHOT. *)
Theorem recovery U L (M M' : 'M[F]_(U, L)) (A : {set 'I_N}) :
  (U <= #|A|)%N -> (forall j, j \in A -> share M j = share M' j) -> M = M'.
Proof.
move=> leU same; apply/eqP; rewrite -subr_eq0; apply/eqP; apply: (shares_zero leU) => j jA.
by rewrite shareD shareN same // subrr.
Qed.

(* The layout: K = U - T sub-masks first, then T rows of noise. *)
Hypothesis a_neq0 : forall j, a j != 0.              (* MDS-02: and no point is 0 *)

Lemma share_col K T L (Z : 'M[F]_(K, L)) (n : 'M[F]_(T, L)) j :
  share (col_mx Z n) j = share Z j + a j ^+ K *: share n j.
Proof.
rewrite /share big_split_ord /= scaler_sumr; congr (_ + _); apply: eq_bigr => i _.
  by rewrite rowKu.
by rewrite rowKd scalerA exprD.
Qed.

Lemma sum_col_mx K T L (I : Type) (r : seq I) (P : pred I) (Z : I -> 'M[F]_(K, L)) (n : I -> 'M[F]_(T, L)) :
  \sum_(i <- r | P i) col_mx (Z i) (n i) = col_mx (\sum_(i <- r | P i) Z i) (\sum_(i <- r | P i) n i).
Proof. by elim/big_rec3: _ => [|i y1 y2 y3 _ ->]; rewrite ?col_mx0 ?add_col_mx. Qed.

(* Noise is determined by the shares of T users, or more: the view of T users is one-to-one in the noise. *)
Lemma noise_inj K T L (Z : 'M[F]_(K, L)) (n n' : 'M[F]_(T, L)) (A : {set 'I_N}) :
  (T <= #|A|)%N -> (forall j, j \in A -> share (col_mx Z n) j = share (col_mx Z n') j) -> n = n'.
Proof.
move=> leT same; apply: (recovery leT) => j jA; move: (same j jA); rewrite !share_col => /addrI.
by apply: scalerI; rewrite expf_neq0.
Qed.
(* Powers of the points of the users in D, from the power s on: any n of them are independent, and any n users. *)
Definition powers (D : {set 'I_N}) s n : 'M[F]_(#|D|, n) := \matrix_(i, k) a (enum_val i) ^+ (s + k).

Lemma powers_share D s n L (M : 'M[F]_(n, L)) i : row i (powers D s n *m M) = a (enum_val i) ^+ s *: share M (enum_val i).
Proof.
apply/rowP => l; rewrite !mxE summxE mulr_sumr; apply: eq_bigr => k _.
by rewrite !mxE exprD mulrA.
Qed.

Lemma powers_zero D s n L (M : 'M[F]_(n, L)) : powers D s n *m M = 0 <-> forall j, j \in D -> share M j = 0.
Proof.
split=> [zero j jD|zero]; last by apply/row_matrixP => i; rewrite powers_share zero ?enum_valP // scaler0 row0.
apply: (@scalerI _ _ (a j ^+ s)); first by rewrite expf_neq0.
by rewrite scaler0 -[j](enum_rankK_in jD jD) -powers_share zero row0.
Qed.

Lemma powers_rank D s n : \rank (powers D s n) = minn n #|D|.
Proof.
have full m : (m <= #|D|)%N -> \rank (powers D s m) = m.
  move=> le; rewrite -mxrank_tr; apply/eqP; apply: inj_row_free => v /(congr1 trmx).
  by rewrite trmx_mul trmxK trmx0 => /powers_zero zero; apply: trmx_inj; rewrite (shares_zero le zero) trmx0.
apply/eqP; rewrite eqn_leq leq_min rank_leq_col rank_leq_row /=; set m := minn _ _.
rewrite -{1}(full m) ?geq_minr // (_ : powers D s m = powers D s n *m pid_mx m) ?mxrankM_maxl //.
apply/matrixP => i k; have kn : (k < n)%N := leq_trans (ltn_ord k) (geq_minl _ _).
rewrite !mxE (bigD1 (Ordinal kn)) //= big1 ?addr0 => [|l lk]; rewrite !mxE /= ?eqxx ?ltn_ord ?mulr1 //.
by rewrite (_ : (l == k :> nat) = false) ?mulr0 //; apply: negbTE; rewrite -(inj_eq val_inj) in lk.
Qed.

Lemma powers_row D K T : powers D 0 (K + T) = row_mx (powers D 0 K) (powers D K T).
Proof. by apply/matrixP => i k; rewrite !mxE; case: splitP => l ->; rewrite mxE. Qed.

(* Shares of a mask that are zero: what its sub-masks give is what the noise takes away. *)
Lemma silent D K T L (Z : 'M[F]_(K, L)) (n : 'M[F]_(T, L)) :
  powers D 0 K *m Z + powers D K T *m n = 0 <-> forall j, j \in D -> share (col_mx Z n) j = 0.
Proof. by rewrite -(powers_zero D 0) powers_row mul_row_col. Qed.
End Code.

(* T-privacy over a finite field, in counting form. *)
Section Privacy.
Variables (F : finFieldType) (N : nat) (a : 'I_N -> F).
Hypothesis a_inj : injective a.
Hypothesis a_neq0 : forall j, a j != 0.
Variables (K T L : nat).

(* What the users c_0 ... c_(t-1) hold. *)
Definition held t (c : 'I_t -> 'I_N) (Z : 'M[F]_(K, L)) (n : 'M[F]_(T, L)) : {ffun 'I_t -> 'rV[F]_L} :=
  [ffun i => share a (col_mx Z n) (c i)].

Lemma held_inj (c : 'I_T -> 'I_N) Z : injective c -> injective (held c Z).
Proof.
move=> injc n n' /ffunP same; apply: (@noise_inj _ _ _ a_inj a_neq0 K T L Z n n' [set c i | i in 'I_T]).
  by rewrite card_imset ?card_ord.
by move=> _ /imsetP[i _ ->]; move: (same i); rewrite !ffunE.
Qed.

(* MDS-10, UNI-SHAMIR: for every mask Z, each view of T users is given by exactly one noise. *)
(* Carries MDS-10, BAS-EQ6, UNI-SHAMIR. *)
Theorem t_privacy (c : 'I_T -> 'I_N) Z v : injective c -> #|[pred n | held c Z n == v]| = 1%N.
Proof.
move=> injc; have inj : injective (held c Z) by exact: held_inj.
have card_eq : #|{ffun 'I_T -> 'rV[F]_L}| = #|{: 'M[F]_(T, L)}|.
  by rewrite card_ffun !card_mx card_ord mul1n -expnM mulnC.
have [g gK Kg] : bijective (held c Z) by apply: inj_card_bij => //; rewrite card_eq.
rewrite (@eq_card1 _ (g v)) // => n; rewrite !inE; apply/eqP/eqP => [<-|->]; [exact/esym/gK | exact: Kg].
Qed.
End Privacy.
