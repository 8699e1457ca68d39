(* The code of spec/conventions.md, section 3, as it stands: points j + 1 modulo a prime q > N, sub-masks of L elements row
   by row, zeros as padding (MDS-01 to MDS-04).  With it the theorems of Code.v and LightSecAgg.v have no premise left. *)
From mathcomp Require Import all_ssreflect all_algebra.
From secagg Require Import Counting Code LightSecAgg.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section Points.
Variables (q N : nat).
Hypotheses (q_prime : prime q) (N_lt_q : (N < q)%N).
Definition point (j : 'I_N) : 'F_q := j.+1%:R.

Lemma point_val j : point j = j.+1 :> nat.
Proof. by rewrite /point val_Fp_nat // modn_small // (leq_ltn_trans (ltn_ord j)). Qed.
Lemma point_inj : injective point.
Proof. by move=> i j /(congr1 val) /=; rewrite !point_val => -[] /val_inj. Qed.
Lemma point_neq0 j : point j != 0.
Proof. by apply/eqP => /(congr1 val) /=; rewrite point_val. Qed.
End Points.

Section Layout.
Variables (F : fieldType) (d K L : nat).
Definition layout (z : 'rV[F]_d) : 'M[F]_(K, L) :=
  \matrix_(k, l) (if insub (k * L + l)%N is Some i then z 0 i else 0).

Lemma layout_linear : linear layout.
Proof.
by move=> c z z'; apply/matrixP => k l; rewrite !mxE; case: insub => [i|]; rewrite ?mxE ?mulr0 ?addr0.
Qed.
Canonical layout_is_linear := Linear layout_linear.

Lemma layout_inj : (d <= K * L)%N -> injective layout.
Proof.
move=> le z z' /matrixP same; apply/rowP => i.
have iKL : (i < K * L)%N := leq_trans (ltn_ord i) le.
have L0 : (0 < L)%N by move: iKL; case: (L) => //; rewrite muln0.
have kK : (i %/ L < K)%N by rewrite ltn_divLR.
have := same (Ordinal kK) (Ordinal (ltn_pmod i L0)).
by rewrite !mxE /= -divn_eq valK.
Qed.
End Layout.

(* L is d / K rounded up. *)
Lemma ceil_enough d K : (0 < K)%N -> (d <= K * ((d + K - 1) %/ K))%N.
Proof.
case: K => // k _; rewrite addnS subn1 /= mulnC -(leq_add2r ((d + k) %% k.+1)) -divn_eq.
by rewrite leq_add2l -ltnS ltn_pmod.
Qed.

(* LightSecAgg with its parameters (LSA-01), all at once. *)
Section Whole.
Variables (q N U T d : nat) (w : 'I_N -> 'F_q).
Hypotheses (q_prime : prime q) (T_gt0 : (0 < T)%N) (T_lt_U : (T < U)%N) (N_lt_q : (N < q)%N).
Let L := ((d + (U - T) - 1) %/ (U - T))%N.
Variables (W U1 Q C : {set 'I_N}).

(* Carries MDS-01, MDS-02, MDS-03, MDS-04, LSA-01, LSA-13, BAS-TPRIV, BAS-EQ21. *)
Theorem lightsecagg : (#|C| <= T)%N -> U1 \subset W -> (U <= #|Q|)%N ->
  learns_exactly (view (T := T) (L := L) (@point q N) (layout_is_linear _ d (U - T) L) w W U1 Q C) (allowed w U1 C).
Proof.
move=> leC sub leQ; apply: lightsecagg_exactly => //.
- exact: point_inj.
- exact: point_neq0.
- by apply: layout_inj; apply: ceil_enough; rewrite subn_gt0.
- by rewrite subnK // ltnW.
Qed.
End Whole.

(* The example of section 3: q = 7, (N, U, T) = (5, 3, 1), the vector (4, 0, 6), the noise (2, 5); user 2 receives (5, 3). *)
(* Carries MDS-03, MDS-04. *)
Example spec_example : share (@point 7 5)
    (col_mx (layout 2 2 (\row_(i < 3) (nth 0%N [:: 4; 0; 6]%N i)%:R)) (\row_(l < 2) (nth 0%N [:: 2; 5]%N l)%:R))
    (@Ordinal 5 2 isT) = \row_(l < 2) (nth 0%N [:: 5; 3]%N l)%:R.
Proof.
rewrite share_col; apply/rowP => l; rewrite /share !mxE !summxE !big_ord_recl !big_ord0 !mxE.
have vec k (h : (k < 3)%N) : insub k = Some (Ordinal h) :> option 'I_3 by rewrite insubT.
have none : insub 3%N = None :> option 'I_3 by rewrite insubN.
case: l => [[|[|l]] hl] //=; rewrite ?(vec 0%N isT) ?(vec 1%N isT) ?(vec 2%N isT) ?none ?mxE; apply: val_inj; vm_compute; reflexivity.
Qed.
