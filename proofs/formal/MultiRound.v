(* Multi-RoundSecAgg (spec/multi-round.md, sections 4 and 5): batches hold, and full rank does not. *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section Log.
(* A log of J rounds: row t is 1 for the users in the sum of round t (any numbers will do).  A combination is z *m P. *)
Variables (F : fieldType) (J N : nat) (P : 'M[F]_(J, N)).
Definition recoverable (i : 'I_N) := exists z : 'rV[F]_J, z *m P = delta_mx 0 i.

Section Batches.
(* Every set is a union of batches. *)
Variables (B : eqType) (batch : 'I_N -> B).
Hypothesis whole : forall t i i', batch i = batch i' -> P t i = P t i'.

(* Every combination has one coefficient for each batch. *)
Lemma constant (z : 'rV[F]_J) i i' : batch i = batch i' -> (z *m P) 0 i = (z *m P) 0 i'.
Proof. by move=> same; rewrite !mxE; apply: eq_bigr => t _; rewrite (whole t same). Qed.

(* So in a combination that is not zero are at least as many users as the smallest batch has: weak privacy. *)
(* Carries MRA-02, MRA-13, UNI-BATCHES, MRS-REM1, MRS-THM1P. *)
Theorem batches_hold T (z : 'rV[F]_J) :
  (forall i, (T <= #|[set i' | batch i' == batch i]|)%N) -> z *m P != 0 ->
  (T <= #|[set i | (z *m P) 0%R i != 0%R]|)%N.
Proof.
move=> big /rV0Pn [i nz]; apply: leq_trans (big i) (subset_leq_card _).
by apply/subsetP => i'; rewrite !inE => /eqP same; rewrite (constant z same).
Qed.

(* No user is recoverable when nobody is alone in a batch, however many rounds there are. *)
(* Carries MRA-21, UNI-BATCHES, MRS-THM1P. *)
Corollary nobody_recoverable i : (exists2 i', i' != i & batch i' = batch i) -> ~ recoverable i.
Proof.
move=> [i' ne same] [z e]; have := constant z same.
by rewrite e !mxE !eqxx (negPf ne) => /esym/eqP; rewrite oner_eq0.
Qed.
End Batches.

(* The converse, for any way to choose: all users are recoverable exactly when the log has rank N. *)
(* Carries MRS-REM2A, MRS-REM11. *)
Theorem full_rank : row_full P <-> forall i, recoverable i.
Proof.
split=> [full i|all]; first by exists (delta_mx 0 i *m pinvmx P); rewrite mulmxKpV // submx_full.
rewrite -sub1mx; apply/row_subP => i; rewrite rowE mulmx1; have [z <-] := all i; exact: submxMl.
Qed.
End Log.

(* Not only linear combinations, and models may change: what the rounds show is a function of the sums over batches. *)
Section Nonlinear.
Variables (G : zmodType) (N J : nat) (B : finType) (batch : 'I_N -> B) (S : 'I_J -> {set 'I_N}).
Hypothesis whole : forall t i i', batch i = batch i' -> (i \in S t) = (i' \in S t).

(* Carries MRA-18, MRA-21, MRS-REM7, UNI-BATCHES. *)
Theorem only_batches (x x' : 'I_J -> 'I_N -> G) :
  (forall t b, \sum_(i | batch i == b) x t i = \sum_(i | batch i == b) x' t i) ->
  forall t, \sum_(i in S t) x t i = \sum_(i in S t) x' t i.
Proof.
move=> same t; pose chosen b := [exists i, (batch i == b) && (i \in S t)].
have by_batch (y : 'I_N -> G) : \sum_(i in S t) y i = \sum_(b | chosen b) \sum_(i | batch i == b) y i.
  rewrite (partition_big batch chosen) => [|i iS]; last by apply/existsP; exists i; rewrite eqxx.
  apply: eq_bigr => b /existsP[j /andP[/eqP <- jS]]; apply: eq_bigl => i.
  by case: eqP => [/(whole t) ->|]; rewrite ?jS ?andbF.
by rewrite !by_batch; apply: eq_bigr => b _; exact: same.
Qed.
End Nonlinear.
