(* What the vectors of mds, shamir, lightsecagg and basecagg say, by the definitions of Code.v, SecAggShamir.v and LightSecAgg.v. *)
From Coq Require Import ZArith.
From mathcomp Require Import all_ssreflect all_algebra zify ssrZ.
From secagg Require Import Code Instances LightSecAgg SecAggShamir Twin.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section Field.
Variables (q : Z) (N : nat).
Local Notation F := (Fp_fieldType (Z.to_nat q)).
Local Notation a := (@point (Z.to_nat q) N).
Hypotheses (q_prime : prime (Z.to_nat q)).
Let q0 : el F q = 0. Proof. exact: el_prime. Qed.

Lemma pointP (j : 'I_N) : a j = el F (Z.of_nat j.+1). Proof. by rewrite el_nat. Qed.

(* What is given for user i, in the order of the list of users. *)
Definition given (A : Type) (s : seq (seq A)) (us : seq nat) i := nth [::] s (index i us).

(* mds.encode: the shares of all users. *)
Definition encodes d K T L mask noise shares := forall j : 'I_N,
  share a (col_mx (layout K L (rowZ F d mask)) (mxZ F T L noise)) j = rowZ F L (nth [::] shares j).

Definition twin_encodes d K T L mask noise (shares : seq (seq Z)) :=
  (size mask <= d)%N && (mkseq (fun j => twin_share q (K + T) L (twin_code K T L mask noise) (Z.of_nat j.+1)) N == shares).

Theorem encodesP d K T L mask noise shares : twin_encodes d K T L mask noise shares -> encodes d K T L mask noise shares.
Proof. by move=> /andP[sz /eqP<-] j; rewrite twin_codeP // (twin_shareP _ _ _ q0 (pointP j)) nth_mkseq. Qed.

(* A matrix with the given shares; and the only one. *)
Definition has U L us shares (M : 'M[F]_(U, L)) := forall j : 'I_N, val j \in us -> share a M j = rowZ F L (given shares us j).

Definition twin_has U L us shares (M : seq (seq Z)) :=
  all (fun j => twin_share q U L M (Z.of_nat j.+1) == given shares us j) us.

Lemma hasP U L us shares M : twin_has U L us shares M -> has us shares (mxZ F U L M).
Proof. by move=> /allP all j /all /eqP <-; rewrite (twin_shareP _ _ _ q0 (pointP j)). Qed.

Hypothesis N_lt_q : (N < Z.to_nat q)%N.

Lemma has_one U L us shares (M M' : 'M[F]_(U, L)) : users_ok N us -> (U <= size us)%N ->
  has us shares M -> has us shares M' -> M = M'.
Proof.
move=> ok le h h'; apply: (recovery (point_inj q_prime N_lt_q) (A := users N us)); rewrite ?card_users // => j.
by rewrite inE => ju; rewrite h ?h'.
Qed.

(* mds.decode: there is one codeword with these shares, and it has the mask in the layout; its padding may be anything. *)
Definition decodes d K T L us shares mask := exists M : 'M[F]_(K + T, L), [/\ has us shares M,
  forall M' : 'M[F]_(K + T, L), has us shares M' -> M' = M
  & forall (k : 'I_K) (l : 'I_L), (k * L + l < d)%N -> usubmx M k l = layout K L (rowZ F d mask) k l].

(* M is a certificate: the codeword. *)
Definition twin_decodes d K T L us shares (mask : seq Z) M :=
  [&& users_ok N us, (K + T <= size us)%N, twin_has (K + T) L us shares M & take d (flatten (take K M)) == mask]
  && all (fun v : seq Z => size v == L) M && (K <= size M)%N.

Lemma flat_nth K L (M : seq (seq Z)) k l : all (fun v : seq Z => size v == L) M -> (K <= size M)%N -> (k < K)%N -> (l < L)%N ->
  nth Z0 (flatten (take K M)) (k * L + l) = nth Z0 (nth [::] M k) l.
Proof.
elim: K M k => // K IH [|r M] // k /= /andP[/eqP sr sM] KM kK lL; rewrite nth_cat sr.
case: k kK => [|k] kK /=; first by rewrite lL.
by rewrite mulSn -addnA ltnNge leq_addr /= addKn IH.
Qed.

Theorem decodesP M d K T L us shares mask : twin_decodes d K T L us shares mask M -> decodes d K T L us shares mask.
Proof.
move=> /andP[/andP[/and4P[ok le /hasP h /eqP fl] sz] KM]; exists (mxZ F (K + T) L M); split=> // [M' h'|k l kl].
  exact: has_one h' h.
rewrite mxE mxE [RHS]mxE insubT mxE -fl /= nth_take // (flat_nth sz KM (ltn_ord k) (ltn_ord l)).
by congr (el _ (nth _ (nth _ _ _) _)).
Qed.

(* Shamir's shares: of a secret and the coefficients, both numbers of the field. *)
Local Notation shamir p := (@SecAggShamir.shamir (Fp_finFieldType (Z.to_nat q)) N p 1 a).
Local Notation number s := (mxZ F 1 1 [:: [:: s]]).
Local Notation numbers p c := (mxZ F p 1 [seq [:: x] | x <- c]).

Definition shares p (secret : Z) (c : seq Z) (s : seq Z) := forall j : 'I_N,
  shamir p (number secret) (numbers p c) j = rowZ F 1 [:: nth Z0 s j].

Definition shares_of p (us : seq nat) (s : seq Z) (secret : 'M[F]_(1, 1)) (c : 'M[F]_(p, 1)) := forall j : 'I_N, val j \in us ->
  shamir p secret c j = rowZ F 1 (given [seq [:: x] | x <- s] us j).
Definition reconstructs p (us : seq nat) (s : seq Z) (secret : Z) := (exists c : 'M[F]_(p, 1), shares_of us s (number secret) c)
  /\ forall s' (c' : 'M[F]_(p, 1)), shares_of us s s' c' -> s' = number secret.

Definition column (secret : Z) (c : seq Z) := [seq [:: x] | x <- secret :: c].
Lemma columnP p secret c : col_mx (number secret) (numbers p c) = mxZ F (1 + p) 1 (column secret c).
Proof. by apply/matrixP => k l; rewrite mxE; case: splitP => k' e; rewrite !mxE e // ord1. Qed.

Definition twin_shares p secret c (s : seq Z) :=
  mkseq (fun j => twin_share q (1 + p) 1 (column secret c) (Z.of_nat j.+1)) N == mkseq (fun j => [:: nth Z0 s j]) N.

Theorem sharesP p secret c s : twin_shares p secret c s -> shares p secret c s.
Proof.
move=> /eqP same j; rewrite /SecAggShamir.shamir columnP (twin_shareP _ _ _ q0 (pointP j)); congr rowZ.
by have := congr1 (fun s => nth [::] s j) same; rewrite !nth_mkseq.
Qed.

(* c is a certificate: the coefficients. *)
Definition twin_reconstructs p us s secret c :=
  [&& users_ok N us, (p < size us)%N & twin_has (1 + p) 1 us [seq [:: x] | x <- s] (column secret c)].

Theorem reconstructsP c p us s secret : twin_reconstructs p us s secret c -> reconstructs p us s secret.
Proof.
move=> /and3P[ok le /hasP h]; have h1 : shares_of us s (number secret) (numbers p c).
  by move=> j ju; rewrite /SecAggShamir.shamir columnP; exact: h.
split=> [|s' c' h']; first by exists (numbers p c).
apply: (shamir_recovery (point_inj q_prime N_lt_q) (A := users N us) (c := c') (c' := numbers p c)).
  by rewrite card_users.
by move=> j; rewrite inE => ju; rewrite h' ?h1.
Qed.

(* LightSecAgg and BASecAgg, with the weights of the users in a list. *)
Section Rounds.
Variables (d K T L : nat).
Hypothesis d_le : (d <= K * L)%N.
Local Notation lay := (layout_is_linear F d K L).
Local Notation Fq := (Fp_finFieldType (Z.to_nat q)).
Implicit Types (x : LightSecAgg.input Fq N d) (r : LightSecAgg.secret Fq N T L d).
Definition weight (ws : seq Z) (us : seq nat) (i : 'I_N) : F := el F (nth Z0 ws (index (val i) us)).

(* lightsecagg.mask, basecagg.mask *)
Definition masks update mask masked := forall x r i, x i = rowZ F d update -> (r i).1 = rowZ F d mask ->
  upload x r i = rowZ F d masked.

(* lightsecagg.aggregate_shares, basecagg.combine: the answer of user j, from the shares that it holds. *)
Definition answers ws us shares answered := forall r j,
  (forall i, val i \in us -> share a (LightSecAgg.code lay r i) j = rowZ F L (given shares us (val i))) ->
  answer a lay (weight ws us) r (users N us) j = rowZ F L answered.

(* lightsecagg.recover, basecagg.recover *)
Definition recovers ws us masked who shares total := forall x r,
  (forall i, val i \in us -> upload x r i = rowZ F d (given masked us (val i))) ->
  (forall j, val j \in who -> answer a lay (weight ws us) r (users N us) j = rowZ F L (given shares who (val j))) ->
  \sum_(i in users N us) weight ws us i *: x i = rowZ F d total.

Definition twin_add n (s t : seq Z) := mkseq (fun l => Z.modulo (nth Z0 s l + nth Z0 t l) q) n.
Lemma twin_addP n s t : rowZ F n (twin_add n s t) = rowZ F n s + rowZ F n t.
Proof. by apply/rowP => l; rewrite !mxE nth_mkseq // el_mod // elD. Qed.

(* The weighted sum of the lists of some users. *)
Definition twin_sum n ws us (s : seq (seq Z)) := mkseq (fun l =>
  foldr (fun i y => Z.modulo (nth Z0 ws (index i us) * nth Z0 (given s us i) l + y) q) Z0 us) n.
Lemma twin_sumP n ws us s : users_ok N us ->
  rowZ F n (twin_sum n ws us s) = \sum_(i in users N us) weight ws us i *: rowZ F n (given s us (val i)).
Proof.
move=> ok; rewrite (sum_users ok (fun i => el F (nth Z0 ws (index i us)) *: rowZ F n (given s us i))).
apply/rowP => l; rewrite mxE nth_mkseq // summxE; elim: {3 4}us => [|i t IH]; first by rewrite big_nil.
by rewrite big_cons /= el_mod // elD elM IH !mxE.
Qed.

Definition twin_masks update mask masked := twin_add d update mask == masked.
Theorem masksP update mask masked : twin_masks update mask masked -> masks update mask masked.
Proof. by move=> /eqP<- x r i xi ri; rewrite /upload xi ri twin_addP. Qed.

Definition twin_answers ws us shares answered := users_ok N us && (twin_sum L ws us shares == answered).
Theorem answersP ws us shares answered : twin_answers ws us shares answered -> answers ws us shares answered.
Proof.
move=> /andP[ok /eqP<-] r j held; rewrite twin_sumP //; apply: eq_bigr => i; rewrite inE => iu.
by rewrite held.
Qed.

(* M is a certificate: the codeword of the weighted sum of the masks. *)
Definition twin_recovers ws us masked who shares total M :=
  [&& users_ok N us, users_ok N who, (K + T <= size who)%N, twin_has (K + T) L who shares M,
      all (fun v : seq Z => size v == L) M, (K <= size M)%N
    & twin_sum d ws us masked == twin_add d total (take d (flatten (take K M)))].

Theorem recoversP M ws us masked who shares total :
  twin_recovers ws us masked who shares total M -> recovers ws us masked who shares total.
Proof.
case/and5P=> oku okw le /hasP h /and3P[sz KM /eqP tot] x r up ans.
set w := weight ws us in ans *; set U := users N us in ans *.
have codes : \sum_(i in U) w i *: LightSecAgg.code lay r i =
    col_mx (lay (\sum_(i in U) w i *: (r i).1)) (\sum_(i in U) w i *: (r i).2).
  by rewrite linear_sum -sum_col_mx; apply: eq_bigr => i _; rewrite /LightSecAgg.code scale_col_mx linearZ.
have same : \sum_(i in U) w i *: LightSecAgg.code lay r i = mxZ F (K + T) L M.
  apply: has_one h => // j ju; rewrite -ans // /answer share_sum.
  by apply: eq_bigr => i _; rewrite shareZ.
have z : \sum_(i in U) w i *: (r i).1 = rowZ F d (take d (flatten (take K M))).
  apply/rowP => i; have iKL : (i < K * L)%N := leq_trans (ltn_ord i) d_le.
  have L0 : (0 < L)%N by move: iKL; case: (L) => //; rewrite muln0.
  have kK : (i %/ L < K)%N by rewrite ltn_divLR.
  move/matrixP: same => /(_ (lshift T (Ordinal kK)) (Ordinal (ltn_pmod i L0))).
  rewrite codes col_mxEu !mxE /= -divn_eq valK => ->.
  by rewrite nth_take // [in RHS](divn_eq i L) (flat_nth sz KM kK) // ltn_mod.
have -> : \sum_(i in U) w i *: x i = \sum_(i in U) w i *: upload x r i - \sum_(i in U) w i *: (r i).1.
  by rewrite /upload; under [X in _ = X - _]eq_bigr do rewrite scalerDr; rewrite big_split addrK.
rewrite z (eq_bigr (fun i => w i *: rowZ F d (given masked us (val i)))) => [|i]; last by rewrite inE => /up ->.
by rewrite -twin_sumP // tot twin_addP addrK.
Qed.
End Rounds.
End Field.
