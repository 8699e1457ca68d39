(* Large primes: by trial division up to the root, and numbers 2^p - 1 by the test of Lucas and Lehmer. *)
From Coq Require Import ZArith.
From mathcomp Require Import all_ssreflect all_fingroup all_algebra ring zify ssrZ.
From secagg Require Import Twin.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory.

(* None of the n numbers d, d + 2, ... divides q. *)
Fixpoint no_divisor n (q d : Z) := if n is n'.+1 then ~~ Z.eqb (Z.modulo q d) 0 && no_divisor n' q (d + 2) else true.

Definition trial (q : Z) := let n := Z.to_nat (Z.div (Z.sqrt q) 2) in
  [&& Z.ltb 2 q, Z.eqb (Z.modulo q 2) 1, Z.ltb q ((3 + 2 * Z.of_nat n) * (3 + 2 * Z.of_nat n)) & no_divisor n q 3].

Lemma no_divisorP n q d k : no_divisor n q d -> (k < n)%N -> Z.modulo q (Z.add d (Z.mul 2 (Z.of_nat k))) <> Z0.
Proof.
elim: n d k => // n IH d [|k] /= /andP[/Z.eqb_spec nd /IH all] kn; first by rewrite Z.add_0_r.
have := all k kn; have -> // : Z.add (Z.add d 2) (Z.mul 2 (Z.of_nat k)) = Z.add d (Z.mul 2 (Z.of_nat k.+1)) by lia.
Qed.

Theorem trialP q : trial q -> prime (Z.to_nat q).
Proof.
rewrite /trial; set n := Z.to_nat (Z.div _ _) => /and4P[/Z.ltb_spec0 q2 /Z.eqb_spec oddq /Z.ltb_spec0 big no].
set Q := Z.to_nat q; have Q2 : (2 < Q)%N by lia.
have qE : q = Z.of_nat Q by lia.
have oddQ : odd Q.
  have := Z.div_mod q 2; rewrite oddq => e; have -> : Q = (Z.to_nat (Z.div q 2)).*2.+1 by lia.
  by rewrite /= odd_double.
have pr := pdiv_prime (ltnW Q2); set p := pdiv Q in pr *.
have /dvdnP[c Qc] : (p %| Q)%N by exact: pdiv_dvd.
apply: ltn_pdiv2_prime; rewrite ?(ltn_trans _ Q2) // -/p.
have oddp : odd p by move: oddQ; rewrite Qc oddM => /andP[].
have p3 : (2 < p)%N by rewrite ltn_neqAle prime_gt1 // andbT; apply: contraTneq oddp => <-.
have pE := odd_double_half p; rewrite oddp in pE; set h := p./2 in pE.
have := @no_divisorP n q 3 h.-1 no; case: ltnP => [kn /(_ isT) []|kn _]; last by nia.
have -> : Z.add 3 (Z.mul 2 (Z.of_nat h.-1)) = Z.of_nat p by lia.
by rewrite qE Qc Nat2Z.inj_mul Z.mod_mul; lia.
Qed.

(* Lucas and Lehmer: reduction modulo 2^p - 1 adds the bits above p to those below. *)
Definition reduce (p x : Z) := Z.add (Z.land x (Z.ones p)) (Z.shiftr x p).
Fixpoint lehmer n (p s : Z) := if n is n'.+1 then lehmer n' p (reduce p (reduce p (s * s - 2))) else s.
Definition mersenne p := Z.sub (Z.pow 2 (Z.of_nat p)) 1.
Definition lucas_lehmer p := (2 < p)%N && Z.eqb (Z.modulo (lehmer (p - 2) (Z.of_nat p) 4) (mersenne p)) 0.

Section Lucas.
Local Open Scope ring_scope.
Variables (p : nat).
Hypothesis p2 : (2 < p)%N.
Let m := Z.to_nat (mersenne p).
Let r := pdiv m.

Lemma mE : m = (2 ^ p - 1)%N.
Proof. by rewrite /m /mersenne; lia. Qed.
Lemma m_gt1 : (1 < m)%N.
Proof. by rewrite mE ltn_subRL (leq_trans _ (leq_pexp2l _ p2)). Qed.

Let F := Fp_finFieldType r.
Lemma r_prime : prime r. Proof. exact: pdiv_prime m_gt1. Qed.

Lemma m0 : m%:R = 0 :> F.
Proof. by have /dvdnP[c ->] := pdiv_dvd m; rewrite natrM (charf0 (char_Fp r_prime)) mulr0. Qed.

Lemma two_p : (2 ^ p)%:R = 1 :> F.
Proof. by have := m0; rewrite mE natrB ?expn_gt0 // => /eqP; rewrite subr_eq0 => /eqP. Qed.

Lemma two_neq0 : 2%:R != 0 :> F.
Proof.
apply/negP => /eqP e; have := two_p; rewrite -(prednK (ltn_trans (isT : 0 < 2)%N p2)) expnS natrM e mul0r.
by move/eqP; rewrite eq_sym oner_eq0.
Qed.

Lemma reduceP x : el F (reduce (Z.of_nat p) x) = el F x.
Proof.
rewrite /reduce Z.land_ones ?Z.shiftr_div_pow2; try lia.
rewrite [in RHS](Z.div_mod x (Z.pow 2 (Z.of_nat p))); last by apply: Z.pow_nonzero; lia.
rewrite !elD elM addrC; congr (_ + _); rewrite (_ : Z.pow 2 _ = Z.of_nat (2 ^ p)); last by lia.
by rewrite el_nat two_p mul1r.
Qed.

(* W = 2 + S and V = 2 - S, where S squared is 3: their product is 1. *)
Let S : 'M[F]_2 := \matrix_(i, j) (if i == 0 then (if j == 0 then 0 else 3%:R) else (if j == 0 then 1 else 0)).
Let W : 'M[F]_2 := 2%:R%:M + S.
Let V : 'M[F]_2 := 2%:R%:M - S.

Lemma SS : S * S = 3%:R%:M.
Proof.
apply/matrixP => -[[|[|//]] i] [[|[|//]] j]; rewrite !mxE !big_ord_recl big_ord0 !mxE /=.
all: by rewrite ?mulr0 ?mul0r ?mulr1 ?mul1r ?addr0 ?add0r.
Qed.

Lemma scal (a b : F) : a%:M * b%:M = (a * b)%:M :> 'M_2. Proof. by rewrite -[LHS]/(_ *m _) -scalar_mxM. Qed.
Lemma SC (a : F) : S * a%:M = a *: S. Proof. by rewrite -[LHS]/(_ *m _) mul_mx_scalar. Qed.
Lemma CS (a : F) : a%:M * S = a *: S. Proof. by rewrite -[LHS]/(_ *m _) mul_scalar_mx. Qed.

Lemma WV : W * V = 1.
Proof.
rewrite /W /V mulrBr !mulrDl !scal SS SC CS opprD addrA addrK -raddfB /=; congr (_%:M).
by rewrite -natrM -natrB.
Qed.
Lemma VW : V * W = 1.
Proof. exact: mulmx1C WV. Qed.

Lemma lehmerP n : W ^+ (2 ^ n) + V ^+ (2 ^ n) = (el F (lehmer n (Z.of_nat p) 4))%:M.
Proof.
suff gen k s t : W ^+ (2 ^ k) + V ^+ (2 ^ k) = (el F s)%:M ->
    W ^+ (2 ^ (k + t)) + V ^+ (2 ^ (k + t)) = (el F (lehmer t (Z.of_nat p) s))%:M.
  rewrite -{1 2}[n]add0n; apply: gen; rewrite !expr1 /W /V addrACA addrN addr0 -raddfD -natrD; congr (_%:M).
elim: t k s => [|t IH] k s e; first by rewrite addn0.
rewrite addnS -addSn; apply: IH; rewrite !reduceP elB elM.
have -> : (el F s * el F s - el F 2)%:M = (el F s)%:M * (el F s)%:M - 2%:R%:M :> 'M_2.
  by rewrite scal -raddfB.
rewrite -e expnS mulnC !exprM !expr2 mulrDl !mulrDr.
have -> : W ^+ (2 ^ k) * V ^+ (2 ^ k) = 1 by rewrite -exprMn_comm ?WV ?expr1n // /GRing.comm WV VW.
have -> : V ^+ (2 ^ k) * W ^+ (2 ^ k) = 1 by rewrite -exprMn_comm ?VW ?expr1n // /GRing.comm WV VW.
by rewrite [1 + _]addrC addrACA -[1]/(1%:M) -raddfD -[1 + 1]/(2%:R) addrK.
Qed.

Hypothesis passed : lucas_lehmer p.

Lemma halfway : W ^+ (2 ^ (p - 1)) = - 1.
Proof.
have [n pn] : exists n, p = n.+2 by case: (p) p2 => [|[|n]] // _; exists n.
have := lehmerP (p - 2); have -> : el F (lehmer (p - 2) (Z.of_nat p) 4) = 0.
  have /andP[_ /Z.eqb_spec] := passed; set x := lehmer _ _ _ => x0.
  have mF : el F (mersenne p) = 0 by rewrite el_pos ?m0 // (ltnW m_gt1).
  by rewrite -(el_mod mF) x0.
rewrite raddf0 => /eqP; rewrite addr_eq0 => /eqP e.
rewrite pn !subSS !subn0 expnS mul2n -addnn exprD; move: e; rewrite pn !subSS subn0 => e; rewrite {1}e.
by rewrite mulNr -exprMn_comm ?VW ?expr1n // /GRing.comm WV VW.
Qed.

Lemma powers n : exists a b : F, W ^+ n = a%:M + b *: S.
Proof.
elim: n => [|n [a [b e]]]; first by exists 1, 0; rewrite expr0 scale0r addr0.
exists (2%:R * a + b * 3%:R), (b * 2%:R + a).
rewrite exprS e /W mulrDl 2![_ * (a%:M + _)]mulrDr -!scalerAr scal SC CS SS scale_scalar_mx scalerA [a *: S + _]addrC addrACA.
by rewrite -scalerDl -raddfD.
Qed.

Lemma order n : (0 < n)%N -> (n < 2 ^ p)%N -> W ^+ n <> 1.
Proof.
move=> n0 np Wn; have [o] := pfactor_coprime (isT : prime 2) n0; rewrite coprime2n => odd_o nE.
set e := logn 2 n in nE; have ep : (e < p)%N.
  by rewrite -(ltn_exp2l _ _ (isT : 1 < 2)%N) (leq_ltn_trans _ np) // [X in (_ <= X)%N]nE leq_pmull // odd_gt0.
have : W ^+ (n * 2 ^ (p - 1 - e)) = 1 by rewrite exprM Wn expr1n.
rewrite {1}nE -mulnA -expnD subnKC; last by rewrite -ltnS subn1 prednK // (leq_ltn_trans _ ep).
rewrite mulnC exprM halfway -signr_odd odd_o expr1 => /matrixP /(_ 0 0); rewrite !mxE /= mulr1n => n1.
by have := two_neq0; rewrite -[2%:R]/(1 + 1) -{1}n1 addNr eqxx.
Qed.

Theorem lucas_lehmerP : prime m.
Proof.
apply: ltn_pdiv2_prime; rewrite ?(ltnW m_gt1) // -/r.
have Wu : W \is a GRing.unit by apply/unitrP; exists V; rewrite VW WV.
pose f (i : 'I_(2 ^ p)) : F * F := ((W ^+ i) 0 0, (W ^+ i) 1 0).
have inj : injective f.
  suff lt (i j : 'I_(2 ^ p)) : (i < j)%N -> f i <> f j.
    by move=> i j e; case: (ltngtP i j) => [/lt/(_ e)|/lt/(_ (esym e))|/val_inj].
  move=> ij [] e0 e1; have same : W ^+ i = W ^+ j.
    move: e0 e1; have [a [b ->]] := powers i; have [c [d ->]] := powers j.
    by rewrite !mxE /= !mulr1n !mulr0n !mulr0 !mulr1 !addr0 !add0r => -> ->.
  apply: (@order (j - i)); rewrite ?subn_gt0 ?(leq_ltn_trans (leq_subr _ _)) //.
  by apply: (mulrI (unitrX i Wu)); rewrite mulr1 -exprD subnKC // ltnW.
have := leq_card f inj; rewrite card_ord card_prod card_Fp ?r_prime // mulnn; apply: leq_trans.
by rewrite mE ltn_subrL expn_gt0.
Qed.
End Lucas.
