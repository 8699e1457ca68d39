(* The stochastic quantiser (spec/conventions.md, section 4; spec/heterosag.md, section 3).  Rationals only:
   binary64 numbers are rationals, so nothing is lost. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory. Local Open Scope ring_scope.

(* The integer at or below a rational, and what is above it. *)
Definition floorq (y : rat) : int := (numq y %/ denq y)%Z.
Definition frac (y : rat) : rat := y - (floorq y)%:~R.

Lemma frac_ge0 y : 0 <= frac y.
Proof.
rewrite /frac subr_ge0 -[leRHS]divq_num_den ler_pdivl_mulr ?ltr0z ?denq_gt0 //.
by rewrite -intrM ler_int lez_floor // denq_eq0.
Qed.

Lemma frac_lt1 y : frac y < 1.
Proof.
rewrite /frac ltr_subl_addr -[ltLHS]divq_num_den ltr_pdivr_mulr ?ltr0z ?denq_gt0 //.
by rewrite -[1]/(1%:~R) -intrD -intrM ltr_int addrC ltz_ceil ?denq_gt0.
Qed.

(* QNT-03: rounded up exactly when u < y - floor y. *)
Definition q (y u : rat) : int := if u < frac y then floorq y + 1 else floorq y.

(* The expectation when the draw u is uniform in [0, 1): up has the probability frac y. *)
Definition expect (y : rat) (g : int -> rat) : rat :=
  frac y * g (floorq y + 1) + (1 - frac y) * g (floorq y).

Lemma q_up y u : u < frac y -> q y u = floorq y + 1. Proof. by rewrite /q => ->. Qed.
Lemma q_down y u : frac y <= u -> q y u = floorq y. Proof. by rewrite /q ltNge => ->. Qed.

(* QNT-02: one of the two integers beside y, and y itself when y is an integer (0 <= u). *)
Lemma q_beside y u : q y u = floorq y \/ q y u = floorq y + 1.
Proof. by rewrite /q; case: ifP; auto. Qed.

Lemma q_int (m : int) u : 0 <= u -> q m%:~R u = m.
Proof.
have fl : floorq m%:~R = m by rewrite /floorq numq_int denq_int divz1.
by move=> u0; rewrite q_down /frac fl // subrr.
Qed.

(* The mean is y, exactly. *)
(* Carries QNT-02, QNT-03, QNT-11, BAS-EQ7, BAS-LEM1A. *)
Theorem unbiased y : expect y (fun k => k%:~R) = y.
Proof. by rewrite /expect /frac intrD; ring. Qed.

(* The variance is f (1 - f), with f = y - floor y ... *)
(* Carries QNT-03, HSA-08, BAS-LEM1B. *)
Theorem variance y : expect y (fun k => (k%:~R - y) ^+ 2) = frac y * (1 - frac y).
Proof. by rewrite /expect /frac intrD; ring. Qed.

(* ... at most 1/4, and this exactly at the midpoints. *)
(* Carries QNT-03, HSA-08, BAS-LEM1B. *)
Theorem variance_le y : expect y (fun k => (k%:~R - y) ^+ 2) <= 4%:R^-1 ?= iff (frac y == 2%:R^-1).
Proof.
rewrite variance; set f := frac y.
have -> : f * (1 - f) = 4%:R^-1 - (f - 2%:R^-1) ^+ 2 by field.
by split; rewrite ?ler_subl_addr ?ler_addl ?sqr_ge0 // subr_eq addrC -subr_eq subrr eq_sym sqrf_eq0 subr_eq0.
Qed.

(* With draws k/n, k = 0 ... n-1 (n = 2^53): exact when n y is an integer, else rounded up with the least multiple of 1/n
   that is not below f. *)
Section Draws.
Variables (n : nat) (y : rat).
Hypothesis n_gt0 : (0 < n)%N.
(* How many of the n draws 0, 1/n, ... round up. *)
Definition ups : nat := #|[pred k : 'I_n | q y (k%:R / n%:R) == floorq y + 1]|.

Lemma ups_between : frac y * n%:R <= ups%:R < frac y * n%:R + 1.
Proof.
have n0 : 0 < n%:R :> rat by rewrite ltr0n.
have z0 : 0 <= frac y * n%:R by rewrite mulr_ge0 ?frac_ge0 ?ltW.
have zn : exists c, frac y * n%:R <= c%:R by exists n; rewrite ler_pimull ?ltW ?frac_lt1 //.
case: (ex_minnP zn) => c zc min.
have cn : (c <= n)%N by apply: min; rewrite ler_pimull ?ltW // frac_lt1.
have -> : ups = c.
  rewrite -[RHS]card_ord /ups -!sum1_card (big_ord_widen _ (fun=> 1%N) cn); apply: eq_bigl => k; rewrite inE.
  have -> : (q y (k%:R / n%:R) == floorq y + 1) = (k%:R / n%:R < frac y).
    by rewrite /q; case: ifP; rewrite ?eqxx // -subr_eq0 opprD addrA subrr sub0r oppr_eq0 oner_eq0.
  rewrite ltr_pdivr_mulr // ltNge; apply/negP/idP => [nle|kc /min]; last by rewrite leqNgt kc.
  by rewrite ltnNge; apply/negP => ck; apply: nle; apply: le_trans zc _; rewrite ler_nat.
rewrite zc /=; case: c zc min {cn} => [|c] _ min; first by rewrite ltr_spaddr.
by rewrite -[X in X%:R]addn1 natrD ltr_add2r ltNge; apply/negP => /min; rewrite ltnn.
Qed.

(* When n y is an integer, exactly frac y * n of them do: the mean over the draws is y. *)
(* Carries QNT-10, QNT-11, BAS-EQ7. *)
Theorem draws_exact (m : nat) : frac y * n%:R = m%:R -> ups = m.
Proof.
move=> e; have := ups_between; rewrite e ler_nat -[1]/(1%:R) -natrD ltr_nat addn1 ltnS => /andP[le ge].
by apply/eqP; rewrite eqn_leq le ge.
Qed.
End Draws.
