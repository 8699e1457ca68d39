(* HeteroSAg (spec/heterosag.md, section 4): the inference robustness of the cyclic matrix is 1 - 1/p, for p the smallest
   prime factor of Z; theorem 1 of the paper holds for odd primes and Z = 4 only.  Claims UNI-DELTA, HET-THM1. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory. Local Open Scope ring_scope.

Section Cyclic.
Variable n : nat.
Local Notation Z := n.+2.                                     (* Z >= 2 subgroups; 'I_Z are the integers modulo Z *)
Implicit Types (l a : 'I_Z) (A : {set 'I_Z}).

(* In segment l subgroup a is in a cell with l + 1 - a. *)
Definition cell l a : {set 'I_Z} := [set a; l + 1 - a].

(* A segment is decodable for A when the cells of its row within A cover A. *)
Definition decodable l A := \bigcup_(a | cell l a \subset A) cell l a == A.
Definition rows A : nat := #|[set l | decodable l A]|.

Lemma decodableP l A : reflect (forall a, a \in A -> l + 1 - a \in A) (decodable l A).
Proof.
apply: (iffP eqP) => [cov a|closed].
  rewrite -{1}cov => /bigcupP[b bA]; rewrite !inE => /orP[]/eqP->; apply: (subsetP bA); rewrite !inE ?eqxx ?orbT //.
  by rewrite opprB addrCA subrr addr0 eqxx.
apply/setP => a; apply/bigcupP/idP => [[b /subsetP bA /bA]//|aA]; exists a; last by rewrite !inE eqxx.
by apply/subsetP => b; rewrite !inE => /orP[]/eqP-> //; exact: closed.
Qed.

(* The translations that keep A are a subgroup of the integers modulo Z. *)
Definition keeps A : {set 'I_Z} := [set h | [forall a in A, a + h \in A]].

Lemma keeps_group A : group_set (keeps A).
Proof.
apply/group_setP; split=> [|h h']; first by rewrite inE; apply/forall_inP => a; rewrite addr0.
rewrite !inE => /forall_inP kh /forall_inP kh'; apply/forall_inP => a aA.
by rewrite [(h * h')%g]/(h + h') addrA kh' ?kh.
Qed.

(* When A is decodable in a row, it is in as many as there are translations that keep it. *)
Lemma rows_keeps A l : decodable l A -> rows A = #|keeps A|.
Proof.
move=> /(decodableP l A) dec; rewrite /rows -[RHS](card_imset _ (addrI l)); apply: eq_card => k.
rewrite inE; apply/(decodableP k A)/imsetP => [deck|[h]].
  exists (k - l); last by rewrite addrC subrK.
  rewrite inE; apply/forall_inP => a /dec/deck.
  by rewrite opprB addrCA [k + 1]addrC [l + 1]addrC opprD addrACA subrr add0r.
rewrite inE => /forall_inP kh -> a /dec /kh.
by rewrite (addrAC l h) (addrAC (l + 1) h).
Qed.

Let p := pdiv Z.
Lemma p_gt1 : (1 < p)%N. Proof. exact: prime_gt1 (pdiv_prime _). Qed.
Lemma p_dvd : (p %| Z)%N. Proof. exact: pdiv_dvd. Qed.

(* A set that is neither empty nor all is decodable in Z/p rows at most: proper subgroups have no more elements. *)
(* Carries HSA-11, UNI-DELTA. *)
Theorem rows_le A : A != set0 -> A != setT -> (rows A <= Z %/ p)%N.
Proof.
move=> /set0Pn[a aA] nT; case: (pickP [pred l | decodable l A]) => [l /= /rows_keeps ->|no]; last first.
  by rewrite /rows (_ : [set l | _] = set0) ?cards0 //; apply/setP => l; rewrite !inE; exact: no.
pose K := group (keeps_group A).
have KT : (#|K| < Z)%N.
  rewrite ltn_neqAle -{2}(card_ord Z) max_card andbT; apply: contra nT => /eqP full.
  have /eqP allK : keeps A == setT by rewrite eqEcard subsetT cardsT card_ord; exact: eq_leq (esym full).
  rewrite -subTset; apply/subsetP => b _.
  have : b - a \in keeps A by rewrite allK inE.
  by rewrite inE => /forall_inP /(_ _ aA); rewrite addrC subrK.
have : (#|K| %| Z)%N by rewrite -[X in (_ %| X)%N](card_ord Z) -cardsT; apply: cardSg; exact: subsetT.
case/dvdnP => q Zq; have q1 : (1 < q)%N by move: KT; rewrite {1}Zq; case: q {Zq} => [|[|q]] //; rewrite ?mul0n ?mul1n ?ltnn.
have pq : (p <= q)%N by apply: pdiv_min_dvd => //; rewrite Zq dvdn_mulr.
rewrite -[X in (X <= _)%N]/#|K| leq_divRL ?(ltnW p_gt1) //.
by rewrite [X in (_ <= X)%N]Zq mulnC leq_mul2r pq orbT.
Qed.

(* The multiples of p attain it. *)
Definition multiples : {set 'I_Z} := [set a : 'I_Z | (p %| a)%N].

Lemma dvd_mod m : (p %| m %% Z)%N = (p %| m)%N. Proof. by rewrite /dvdn modn_dvdm ?p_dvd. Qed.

Lemma card_multiples : #|multiples| = (Z %/ p)%N.
Proof.
have lt (k : 'I_(Z %/ p)) : (p * k < Z)%N.
  by apply: leq_trans (leq_trunc_div Z p); rewrite mulnC ltn_mul2r (ltn_ord k) (ltnW p_gt1).
rewrite -[RHS]card_ord -(card_imset (f := fun k => Ordinal (lt k))); last first.
  move=> k k' /(congr1 val) /= /eqP; rewrite eqn_mul2l (gtn_eqF (ltnW p_gt1)) /= => /eqP e; exact: val_inj.
apply: eq_card => a; rewrite inE; apply/dvdnP/imsetP => [[k ak]|[k _ ->]]; last by exists k; rewrite /= mulnC.
have kl : (k < Z %/ p)%N by rewrite ltn_divRL ?p_dvd // -ak.
by exists (Ordinal kl) => //; apply: val_inj; rewrite /= ak mulnC.
Qed.

(* Carries HSA-11, UNI-DELTA. *)
Theorem rows_multiples : [/\ multiples != set0, multiples != setT & rows multiples = (Z %/ p)%N].
Proof.
have m0 : (0 : 'I_Z) \in multiples by rewrite inE.
have dec : decodable (- 1) multiples.
  apply/decodableP => a; rewrite !inE addNr sub0r /= dvd_mod => pa.
  by rewrite dvdn_sub ?p_dvd.
split.
- by apply/set0Pn; exists 0.
- by apply/eqP => /setP /(_ 1); rewrite !inE /= modn_small // dvdn1 => /eqP p1; move: p_gt1; rewrite p1.
rewrite (rows_keeps dec) -card_multiples; apply: eq_card => h; rewrite !inE.
apply/forall_inP/idP => [/(_ _ m0)|ph a]; first by rewrite add0r inE.
by rewrite !inE /= dvd_mod => pa; rewrite dvdn_add.
Qed.

(* The inference robustness: 1 minus the largest share of decodable rows. *)
Definition robustness : rat :=
  1 - (\max_(A : {set 'I_Z} | (A != set0) && (A != setT)) rows A)%:R / Z%:R.

(* Carries HSA-11, UNI-DELTA. *)
Theorem robustness_cyclic : robustness = 1 - p%:R^-1.
Proof.
have [n0 nT r] := rows_multiples; congr (1 - _).
have -> : (\max_(A : {set 'I_Z} | (A != set0) && (A != setT)) rows A = Z %/ p)%N.
  apply/eqP; rewrite eqn_leq; apply/andP; split; first by apply/bigmax_leqP => A /andP[]; exact: rows_le.
  by rewrite -r; apply: (bigmax_sup multiples) => //; rewrite n0 nT.
have Z0 : (Z%:R : rat) != 0 by rewrite pnatr_eq0.
have p0 : (p%:R : rat) != 0 by rewrite pnatr_eq0 -lt0n (ltnW p_gt1).
by apply: (mulIf Z0); rewrite divfK // -{2}(divnK p_dvd) natrM mulrCA mulVf ?mulr1.
Qed.

(* Theorem 1 of the paper: (Z - 1)/Z for odd Z, (Z - 2)/Z for even Z.  Right exactly for odd primes and for 4. *)
Definition claimed : rat := if odd Z then (Z%:R - 1) / Z%:R else (Z%:R - 2%:R) / Z%:R.

(* Carries HSA-11, HET-THM1, HET-THM4, UNI-DELTA. *)
Theorem theorem1_right : (robustness == claimed) = (prime Z && odd Z) || (Z == 4%N).
Proof.
have Z0 : (Z%:R : rat) != 0 by rewrite pnatr_eq0.
rewrite robustness_cyclic /claimed; case: ifP => oddZ.
  rewrite mulrBl divff // mul1r (inj_eq (addrI 1)) eqr_opp (inj_eq invr_inj) eqr_nat andbT.
  rewrite (_ : (Z == 4%N) = false) ?orbF; last by apply/eqP => Z4; move: oddZ; rewrite Z4.
  by apply/eqP/idP => [<-|/pdiv_id //]; rewrite pdiv_prime.
have p2 : p = 2%N.
  by apply/eqP; rewrite eqn_leq p_gt1 andbT pdiv_min_dvd // dvdn2 oddZ.
rewrite mulrBl divff // (inj_eq (addrI 1)) eqr_opp andbF /= p2 -(inj_eq (mulIf Z0)) divfK //.
by rewrite -(inj_eq (mulfI (_ : (2%:R : rat) != 0))) // mulrA divff // mul1r -natrM eqr_nat.
Qed.

(* So it is false for all composite numbers but 4: for these a set is decodable in more rows than is promised. *)
(* Carries HSA-11, HET-THM1, HET-THM4. *)
Corollary theorem1_false : ~~ prime Z -> Z != 4%N -> robustness < claimed.
Proof.
move=> nprime n4; have [Z0 p0] : (0 < Z%:R :> rat) /\ (0 < p%:R :> rat) by rewrite !ltr0n (ltnW p_gt1).
rewrite robustness_cyclic /claimed; case: ifP => oddZ; rewrite mulrBl divff ?(lt0r_neq0 Z0) ?ltr_add2l ?ltr_opp2 //.
  rewrite mul1r ltf_pinv ?posrE // ltr_nat ltn_neqAle pdiv_leq // andbT.
  by apply: contra nprime => /eqP <-; rewrite pdiv_prime.
have p2 : p = 2%N by apply/eqP; rewrite eqn_leq p_gt1 andbT pdiv_min_dvd // dvdn2 oddZ.
rewrite p2 ltr_pdivr_mulr // ltr_pdivl_mull // -natrM ltr_nat.
by case: n nprime n4 oddZ => [|[|[|[|k]]]].
Qed.
End Cyclic.
