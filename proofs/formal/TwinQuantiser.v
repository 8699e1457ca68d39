(* What the vectors of quantizer.quantize and quantize.levels say, by the definitions of Quantiser.v. *)
From Coq Require Import ZArith.
From mathcomp Require Import all_ssreflect all_algebra zify ssrZ.
From secagg Require Import Quantiser Twin.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory. Local Open Scope ring_scope.

(* A fraction, with a denominator above 0. *)
Definition fraction (x : Z * Z) : rat := el rat_Ring x.1 / el rat_Ring x.2.
Definition positive (x : Z * Z) := Z.ltb 0 x.2.

Lemma floor_unique y (m : int) : m%:~R <= y < m%:~R + 1 -> floorq y = m.
Proof.
have := frac_ge0 y; have := frac_lt1 y; rewrite /frac subr_ge0 ltr_subl_addr [1 + _]addrC => lt ge /andP[le up].
have one (a b : int) : a%:~R <= y -> y < b%:~R + 1 -> a <= b.
  by move=> ay yb; rewrite -ltz_addr1 -(ltr_int rat_numDomainType) intrD (le_lt_trans ay).
by apply/eqP; rewrite eq_le !one.
Qed.

Definition twin_floor (y : Z * Z) := Z.div y.1 y.2.
Definition twin_q (y u : Z * Z) := let f := twin_floor y in
  if Z.ltb (u.1 * y.2) ((y.1 - f * y.2) * u.2) then Z.add f 1 else f.

Lemma el_gt0 x : Z.ltb 0 x -> 0 < el rat_Ring x.
Proof. by move=> x0; rewrite ltr0z; lia. Qed.
Lemma el_le x y : (el rat_Ring x <= el rat_Ring y) = Z.leb x y.
Proof. by rewrite ler_int; lia. Qed.
Lemma el_lt x y : (el rat_Ring x < el rat_Ring y) = Z.ltb x y.
Proof. by rewrite ltr_int; lia. Qed.

Lemma twin_floorP y : positive y -> floorq (fraction y) = int_of_Z (twin_floor y).
Proof.
move=> y0; have := el_gt0 y0; have yZ : Z.lt 0 y.2 by move: y0; rewrite /positive; lia.
have := Z.mul_div_le y.1 y.2 yZ; have := Z.mul_succ_div_gt y.1 y.2 yZ; rewrite -/(twin_floor y) => up lo pos.
apply: floor_unique; rewrite -/(el rat_Ring _) -[1]/(el rat_Ring 1) -elD ler_pdivl_mulr // ltr_pdivr_mulr // -!elM el_le el_lt.
by apply/andP; split; lia.
Qed.

Theorem twin_qP y u : positive y -> positive u -> q (fraction y) (fraction u) = int_of_Z (twin_q y u).
Proof.
move=> py pu; rewrite /q /frac twin_floorP // /twin_q -/(el rat_Ring _).
have -> : (fraction u < fraction y - el rat_Ring (twin_floor y)) =
    Z.ltb (Z.mul u.1 y.2) (Z.mul (Z.sub y.1 (Z.mul (twin_floor y) y.2)) u.2).
  have [y0 u0] := (el_gt0 py, el_gt0 pu); rewrite -el_lt !elM elB elM /fraction ltr_pdivr_mulr //.
  have yE : (el rat_Ring y.1 / el rat_Ring y.2 - el rat_Ring (twin_floor y)) * el rat_Ring y.2 =
    el rat_Ring y.1 - el rat_Ring (twin_floor y) * el rat_Ring y.2 by rewrite mulrBl divfK ?lt0r_neq0.
  by rewrite -[LHS](ltr_pmul2r y0) [X in _ < X]mulrAC yE.
by case: ifP => // _; rewrite (rmorphD [rmorphism of int_of_Z]).
Qed.

(* quantizer.quantize: the residues modulo R of the quantised numbers. *)
Definition quantises R (ys us : seq (Z * Z)) (xs : seq Z) := [seq (q (fraction yu.1) (fraction yu.2))%:~R | yu <- zip ys us]
  = [seq el [ringType of 'Z_(Z.to_nat R)] x | x <- xs].
(* quantize.levels: the quantised numbers. *)
Definition levels (ys us : seq (Z * Z)) (xs : seq Z) :=
  [seq q (fraction yu.1) (fraction yu.2) | yu <- zip ys us] = [seq int_of_Z x | x <- xs].

Definition twin_levels ys us xs := all positive ys && all positive us && ([seq twin_q yu.1 yu.2 | yu <- zip ys us] == xs).
Definition twin_quantises R ys us xs := [&& Z.ltb 1 R, all positive ys, all positive us
  & [seq Z.modulo (twin_q yu.1 yu.2) R | yu <- zip ys us] == xs].

Lemma zip_positive ys us : all positive ys -> all positive us ->
  {in zip ys us, forall yu, q (fraction yu.1) (fraction yu.2) = int_of_Z (twin_q yu.1 yu.2)}.
Proof.
elim: ys us => [|y ys IH] [|u us] //= /andP[py pys] /andP[pu pus] yu; rewrite inE => /predU1P[->|]; first exact: twin_qP.
exact: IH.
Qed.

Theorem levelsP ys us xs : twin_levels ys us xs -> levels ys us xs.
Proof.
by move=> /andP[/andP[py pu] /eqP<-]; rewrite /levels -map_comp; apply/eq_in_map => yu yuz; rewrite (zip_positive py pu).
Qed.

Theorem quantisesP R ys us xs : twin_quantises R ys us xs -> quantises R ys us xs.
Proof.
move=> /and4P[R1 py pu /eqP<-]; rewrite /quantises -map_comp; apply/eq_in_map => yu yuz /=.
by rewrite (zip_positive py pu) // el_mod //; apply: el_modulus; lia.
Qed.
