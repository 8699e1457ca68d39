(* Twins of the definitions over binary integers, so that the prover computes them, also modulo 2^32 - 5.  Each is proved equal to
   the definition; check.py states with them what the vectors of spec/vectors say (Examples.v, written when it builds). *)
From Coq Require Import ZArith.
From mathcomp Require Import all_ssreflect all_algebra zify ssrZ.
From secagg Require Import Code Instances.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

(* A number as an element of a ring, a list as a row, a list of lists as a matrix; what is missing is 0. *)
Section Elements.
Variable A : ringType.
Definition el (z : Z) : A := (int_of_Z z)%:~R.
Definition rowZ n (s : seq Z) : 'rV[A]_n := \row_l el (nth Z0 s l).
Definition mxZ m n (s : seq (seq Z)) : 'M[A]_(m, n) := \matrix_(k, l) el (nth Z0 (nth [::] s k) l).

Lemma el0 : el 0 = 0. Proof. by []. Qed.
Lemma el1 : el 1 = 1. Proof. by []. Qed.
Lemma elD x y : el (x + y) = el x + el y.
Proof. by rewrite /el -rmorphD; congr (_%:~R); exact: (rmorphD [rmorphism of int_of_Z] x y). Qed.
Lemma elN x : el (- x) = - el x.
Proof. by rewrite /el -rmorphN; congr (_%:~R); exact: (rmorphN [rmorphism of int_of_Z] x). Qed.
Lemma elM x y : el (x * y) = el x * el y.
Proof. by rewrite /el -rmorphM; congr (_%:~R); exact: (rmorphM [rmorphism of int_of_Z] x y). Qed.
Lemma elB x y : el (x - y) = el x - el y. Proof. by rewrite -elN -elD. Qed.
Lemma el_nat n : el (Z.of_nat n) = n%:R.
Proof. by elim: n => // n IH; rewrite Nat2Z.inj_succ -Z.add_1_l elD IH mulrS. Qed.

Variable q : Z.
Hypothesis q0 : el q = 0.
Lemma el_mod x : el (Z.modulo x q) = el x.
Proof.
have [->|qn] := Z.eq_dec q 0; first by rewrite Zmod_0_r.
by rewrite [in RHS](Z.div_mod x q) // elD elM q0 mul0r add0r.
Qed.
End Elements.

Lemma el_pos (A : ringType) q : (0 < Z.to_nat q)%N -> el A q = (Z.to_nat q)%:R.
Proof. by case: q => [|p|p] // _; rewrite -el_nat Z2Nat.id. Qed.

(* Both kinds of numbers of the text: a prime field, and the integers modulo R. *)
Lemma el_prime q : prime (Z.to_nat q) -> el [ringType of 'F_(Z.to_nat q)] q = 0.
Proof. by move=> pr; rewrite el_pos ?prime_gt0 // (charf0 (char_Fp pr)). Qed.
Lemma el_modulus R : (1 < Z.to_nat R)%N -> el [ringType of 'Z_(Z.to_nat R)] R = 0.
Proof. by move=> R1; rewrite el_pos ?(ltnW R1) // char_Zp. Qed.

Lemma below (N : nat) q : Z.ltb (Z.of_nat N) q -> (N < Z.to_nat q)%N.
Proof. by move=> /Z.ltb_spec0; lia. Qed.

(* Sums over users in a list are sums over a set of users. *)
Section Users.
Variables (N : nat) (s : seq nat).
Definition users : {set 'I_N} := [set i : 'I_N | val i \in s].
Definition users_ok := uniq s && all (gtn N) s.
Hypothesis s_ok : users_ok.

Lemma users_perm : perm_eq [seq val i | i <- enum users] s.
Proof.
have /andP[us /allP lt] := s_ok; apply: uniq_perm; rewrite ?(map_inj_uniq val_inj) ?enum_uniq // => k.
apply/mapP/idP => [[i]|ks]; first by rewrite mem_enum inE => ? ->.
by exists (Ordinal (lt k ks)); rewrite ?mem_enum ?inE.
Qed.

Lemma card_users : #|users| = size s.
Proof. by rewrite cardE -(size_map val) (perm_size users_perm). Qed.

Lemma sum_users (G : zmodType) (f : nat -> G) : \sum_(i in users) f (val i) = \sum_(k <- s) f k.
Proof. by rewrite -(perm_big _ users_perm) big_map big_enum. Qed.
End Users.

(* The code. *)
Section Code.
Variables (q : Z).

(* The value at x of the polynomial whose coefficients are the entries l of the first U rows of M, modulo q. *)
Definition twin_value U (M : seq (seq Z)) x l :=
  foldr (fun k y => Z.modulo (nth Z0 (nth [::] M k) l + x * y) q) Z0 (iota 0 U).
Definition twin_share U L M x := mkseq (twin_value U M x) L.

Lemma twin_valueP (A : ringType) U M x l : el A q = 0 ->
  el A (twin_value U M x l) = \sum_(k < U) el A x ^+ k * el A (nth Z0 (nth [::] M k) l).
Proof.
move=> q0; rewrite /twin_value.
suff gen s : el A (foldr (fun k y => Z.modulo (nth Z0 (nth [::] M k) l + x * y) q) Z0 (iota s U)) =
    \sum_(k < U) el A x ^+ k * el A (nth Z0 (nth [::] M (s + k)) l) by rewrite gen.
elim: U s => [|U IH] s /=; first by rewrite big_ord0.
rewrite big_ord_recl el_mod // elD elM IH mul1r addn0 mulr_sumr; congr (_ + _).
by apply: eq_bigr => k _; rewrite mulrA exprS /bump /= addSnnS.
Qed.

Theorem twin_shareP (F : fieldType) N (a : 'I_N -> F) U L M (j : 'I_N) x : el F q = 0 -> a j = el F x ->
  share a (mxZ F U L M) j = rowZ F L (twin_share U L M x).
Proof.
move=> q0 aj; apply/rowP => l; rewrite !mxE nth_mkseq // twin_valueP // summxE.
by apply: eq_bigr => k _; rewrite !mxE aj.
Qed.

(* The sub-masks of the layout, and the rows of noise below them. *)
Definition twin_code K T L (mask : seq Z) (noise : seq (seq Z)) :=
  mkseq (fun k => if (k < K)%N then take L (drop (k * L) mask) else nth [::] noise (k - K)) (K + T).

Theorem twin_codeP (F : fieldType) d K T L mask noise : (size mask <= d)%N ->
  col_mx (layout K L (rowZ F d mask)) (mxZ F T L noise) = mxZ F (K + T) L (twin_code K T L mask noise).
Proof.
move=> sz; apply/matrixP => k l; rewrite [RHS]mxE nth_mkseq ?ltn_ord // mxE.
case: splitP => [k' ->|k' ->]; rewrite !mxE ?ltn_ord ?ltnNge ?leq_addr /= ?addKn //.
rewrite nth_take // nth_drop; case: insubP => [i _ /= <-|]; first by rewrite mxE.
by rewrite -leqNgt => le; rewrite nth_default ?el0 // (leq_trans sz).
Qed.
End Code.
