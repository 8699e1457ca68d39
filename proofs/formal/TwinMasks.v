(* What the vectors of basa.mask say: the upload of a position, with its masks and their signs, by the definition of Basa.v. *)
From Coq Require Import ZArith.
From mathcomp Require Import all_ssreflect all_algebra zify ssrZ.
From secagg Require Import Basa Twin.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section Masks.
Variables (R : Z) (P d : nat).
Hypothesis R_gt1 : (1 < Z.to_nat R)%N.
Local Notation A := [ringType of 'Z_(Z.to_nat R)].
Local Notation G := (matrix_zmodType A 1 d).
Let R0 : el A R = 0. Proof. exact: el_modulus. Qed.

(* basa.mask: position k, after the accepted positions us, whose masks are those of `before`; its own mask, and the masks to the
   positions to come. *)
Definition uploads (k : nat) (us : seq nat) weight update own (before after : seq (seq Z)) masked := forall (v b : 'I_P -> G) (m : 'I_P -> 'I_P -> G) (p : 'I_P),
  val p = k -> v p = el A weight *: rowZ A d update -> b p = rowZ A d own ->
  (forall i : 'I_P, val i \in us -> m i p = rowZ A d (nth [::] before (index (val i) us))) ->
  (forall j : 'I_P, (k < j)%N -> m p j = rowZ A d (nth [::] after (j - k.+1))) ->
  Basa.masked (users P us) v b m p = rowZ A d masked.

Definition twin_all (ss : seq (seq Z)) l := foldr (fun s y => Z.modulo (nth Z0 s l + y) R) Z0 ss.
Lemma twin_allP (ss : seq (seq Z)) : rowZ A d (mkseq (twin_all ss) d) = \sum_(s <- ss) rowZ A d s.
Proof.
apply/rowP => l; rewrite mxE nth_mkseq // summxE; elim: ss => [|s ss IH]; first by rewrite big_nil.
by rewrite big_cons /= el_mod // elD IH mxE.
Qed.

Definition twin_uploads (k : nat) (us : seq nat) weight update own (before after : seq (seq Z)) masked :=
  [&& users_ok P us, all (gtn k) us, size before == size us, size after == (P - k.+1)%N
    & mkseq (fun l => Z.modulo (weight * nth Z0 update l + nth Z0 own l + twin_all after l - twin_all before l) R) d == masked].

Theorem uploadsP k us weight update own before after masked :
  twin_uploads k us weight update own before after masked -> uploads k us weight update own before after masked.
Proof.
move=> /and5P[ok /allP lt /eqP sb /eqP sa /eqP <-] v b m p pk vp bp mb ma.
have /andP[us_uniq _] := ok.
have later : \sum_(j < P | (p < j)%N) m p j = \sum_(s <- after) rowZ A d s.
  pose f j : G := rowZ A d (nth [::] after (j - k.+1)); have oks : users_ok P (iota k.+1 (P - k.+1)).
    rewrite /users_ok iota_uniq; apply/allP => j; rewrite mem_iota /= => /andP[_]; rewrite subnKC // -pk; exact: ltn_ord.
  rewrite (eq_bigr (fun j : 'I_P => f (val j))) => [|j]; last by rewrite pk => /ma.
  rewrite (eq_bigl (fun j : 'I_P => j \in users P (iota k.+1 (P - k.+1)))) => [|j]; last first.
    by rewrite pk inE mem_iota subnKC ?ltn_ord ?andbT // -pk ltn_ord.
  rewrite (sum_users oks f) -{1}[k.+1]addn0 iotaDl big_map [RHS](big_nth [::]) sa /index_iota subn0.
  by apply: eq_bigr => j _; rewrite /f addKn.
have sooner : \sum_(i in users P us | (i < p)%N) m i p = \sum_(s <- before) rowZ A d s.
  pose f i : G := rowZ A d (nth [::] before (index i us)).
  rewrite (eq_bigl (fun i => i \in users P us)) => [|i]; last first.
    by rewrite pk; apply: andb_idr; rewrite inE => /lt.
  rewrite (eq_bigr (fun i : 'I_P => f (val i))) => [|i]; last by rewrite inE => /mb.
  rewrite (sum_users ok f) (big_nth 0%N) [RHS](big_nth [::]) sb; apply: eq_big_nat => i /andP[_ lti].
  by rewrite /f index_uniq.
rewrite /Basa.masked vp bp later sooner -!twin_allP; apply/rowP => l.
by rewrite !mxE !nth_mkseq // el_mod // elB !elD elM.
Qed.
End Masks.
