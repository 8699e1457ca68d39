(* What an affine view tells, over any finite commutative group or ring.  Claim UNI-RANK, without ranks. *)
From mathcomp Require Import all_ssreflect all_algebra.
From secagg Require Import Counting.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section Linear.
(* The view A s + B r of a secret s, with r uniform; A is any function. *)
Variables (S : Type) (R V : finZmodType) (A : S -> V) (B : {additive R -> V}).
Definition affine s r := A s + B r.

(* Each view that can be is as likely as each other: it has as many r as the kernel of B has elements. *)
Lemma ways_affine s v : ways affine s v = if [exists r, B r == v - A s] then #|[pred r | B r == 0]| else 0%N.
Proof.
case: existsP => [[r0 /eqP Br0]|no]; last first.
  by apply: eq_card0 => r; rewrite !inE; apply/eqP => e; case: no; exists r; rewrite -e /affine addrC addKr.
rewrite /ways -!sum1_card (reindex_inj (addrI r0)); apply: eq_bigl => r; rewrite !inE /affine raddfD Br0.
by rewrite addrA [A s + _]addrC subrK -{2}[v]addr0 (inj_eq (addrI v)).
Qed.

(* One-time pad: when the noise reaches every view, every view is equally likely for every secret. *)
(* Carries UNI-RANK, BAS-EQ10. *)
Theorem one_time_pad : (forall v, exists r, B r = v) -> forall s v, ways affine s v = #|[pred r | B r == 0]|.
Proof. by move=> onto s v; rewrite ways_affine; case: existsP => // -[]; have [r <-] := onto (v - A s); exists r. Qed.

(* What is learned in general: f exactly, when f tells secrets apart up to what the noise reaches. *)
(* Carries UNI-RANK. *)
Theorem learned_affine (F : Type) (f : S -> F) :
  (forall s s', f s = f s' <-> exists r, A s - A s' = B r) -> learns_exactly affine f.
Proof.
move=> exactly; split=> [|s s' r r' same].
  apply: hides_by_moving => s s' /exactly [r0 Ar0]; exists (+%R r0); first exact: addrI.
  by move=> r; rewrite /affine raddfD -Ar0 addrA addrCA subrr addr0.
apply/exactly; exists (r' - r); rewrite raddfB; apply/eqP; rewrite subr_eq addrAC eq_sym subr_eq.
by rewrite addrC -/(affine s' r') -same.
Qed.
End Linear.

(* Matrices over a finite commutative ring: the noise part has a right inverse (over a field: full row rank). *)
(* Carries UNI-RANK. *)
Theorem one_time_pad_mx (R : finComUnitRingType) (S : Type) (m n : nat) (A : S -> 'cV[R]_m) (B : 'M[R]_(m, n))
  (B' : 'M[R]_(n, m)) : B *m B' = 1%:M ->
  forall s v, ways (fun s (r : 'cV[R]_n) => A s + B *m r) s v = #|[pred r : 'cV[R]_n | B *m r == 0]|.
Proof.
move=> BB' s v; apply: (@one_time_pad _ _ _ A [additive of mulmx B]) => w.
by exists (B' *m w); rewrite /= mulmxA BB' mul1mx.
Qed.
