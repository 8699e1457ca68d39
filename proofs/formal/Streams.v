(* Weighted sums of uploads with pairwise masks (spec/basecagg.md, section 1: why SecAgg does not do for a buffer).  Claims
   UNI-STREAMS, BAS-EQ5. *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section Streams.
(* A are the users in the sum, w i their weights, s i j (i < j) the stream of a pair of neighbours. *)
Variables (R : comRingType) (N : nat) (nb : rel 'I_N) (A : {set 'I_N}) (w : 'I_N -> R).
Hypothesis nb_sym : symmetric nb.

(* What the masks of pairs leave in the weighted sum. *)
Definition left_over (s : 'I_N -> 'I_N -> R) := \sum_(i in A) w i *
  (\sum_(j in A | nb i j && (i < j)%N) s i j - \sum_(j in A | nb i j && (j < i)%N) s j i).

(* Carries UNI-STREAMS. *)
Theorem streams_left s : left_over s = \sum_(i in A) \sum_(j in A | nb i j && (i < j)%N) (w i - w j) * s i j.
Proof.
rewrite /left_over; under eq_bigr do rewrite mulrBr !mulr_sumr.
rewrite sumrB [X in _ - X = _](exchange_big_dep (mem A)) /=; last by move=> i j _ /andP[].
rewrite -sumrB; apply: eq_bigr => i iA; under [RHS]eq_bigr do rewrite mulrBl.
rewrite sumrB; congr (_ - _); apply: eq_bigl => j; by rewrite iA nb_sym.
Qed.

(* Nothing is left, whatever the streams are, exactly when neighbours have equal weights. *)
(* Carries UNI-STREAMS. *)
Theorem streams_cancel : (forall s, left_over s = 0) <-> (forall i j, i \in A -> j \in A -> nb i j -> w i = w j).
Proof.
split=> [zero|same s]; last first.
  rewrite streams_left big1 // => i iA; rewrite big1 // => j /andP[jA /andP[nij _]].
  by rewrite (same i j) // subrr mul0r.
suff one (i j : 'I_N) : (i < j)%N -> i \in A -> j \in A -> nb i j -> w i = w j.
  move=> i j iA jA nij; case: (ltngtP i j) => [ij|ji|/val_inj -> //]; first exact: one.
  by apply/esym; apply: one; rewrite // nb_sym.
move=> ij iA jA nij; apply/eqP; rewrite -subr_eq0; apply/eqP.
have := zero (fun k l => if (k == i) && (l == j) then 1 else 0); rewrite streams_left (bigD1 i) //= (bigD1 j) ?jA ?nij //=.
rewrite !eqxx mulr1 !big1 ?addr0 // => [k /andP[_ /negPf ki]|k /andP[_ /negPf kj]]; last by rewrite kj mulr0.
by rewrite big1 // => l _; rewrite ki mulr0.
Qed.
End Streams.
