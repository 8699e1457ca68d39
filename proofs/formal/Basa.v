(* BASA (spec/basa.md, section 4): the masks of positions cancel, for any users that are skipped. *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section Basa.
(* P positions, of which A are accepted; v k is the weighted update at position k, b k its self mask, m i j the mask from
   i to j. *)
Variables (G : zmodType) (P : nat) (A : {set 'I_P}) (v b : 'I_P -> G) (m : 'I_P -> 'I_P -> G).

(* The user at k adds a mask for each position to come, and removes those of the accepted positions before. *)
Definition masked k : G := v k + b k + \sum_(j < P | (k < j)%N) m k j - \sum_(i in A | (i < k)%N) m i k.

Lemma rearrange (c e x y z : G) : c + e + (x + y) - z - e - y = c + (x - z).
Proof. by rewrite (addrC c e) -(addrA e c) -(addrA e) [e + _]addrC addrK addrAC addrA addrK -addrA. Qed.

(* Carries BAA-20, UNI-BASASETTLE. *)
Theorem basa_correct :
  \sum_(k in A) (masked k - b k - \sum_(j | (j \notin A) && (k < j)%N) m k j) = \sum_(k in A) v k.
Proof.
have split_m (k : 'I_P) : \sum_(j < P | (k < j)%N) m k j =
    \sum_(j in A | (k < j)%N) m k j + \sum_(j | (j \notin A) && (k < j)%N) m k j.
  by rewrite (bigID (mem A)) /=; congr (_ + _); apply: eq_bigl => j; rewrite andbC.
under eq_bigr do rewrite /masked split_m rearrange.
rewrite big_split /= -[RHS]addr0; congr (_ + _).
rewrite sumrB; apply/eqP; rewrite subr_eq0; apply/eqP.
rewrite (exchange_big_dep (mem A)) /=; last by move=> i j _ /andP[].
by apply: eq_bigr => j jA; apply: eq_bigl => i; rewrite jA.
Qed.
End Basa.

(* BASA-EQ7: without self masks, the uploads so far are off from their sum by the masks to the positions to come. *)
(* Carries BAA-26, BASA-EQ7. *)
Corollary basa_prefix (G : zmodType) (P n : nat) (v : 'I_P -> G) (m : 'I_P -> 'I_P -> G) :
  let A := [set k : 'I_P | (k < n)%N] in
  \sum_(k in A) masked A v (fun=> 0) m k = \sum_(k in A) v k + \sum_(k in A) \sum_(j < P | (n <= j)%N) m k j.
Proof.
move=> A; rewrite -(basa_correct A v (fun=> 0) m) -big_split /=; apply: eq_bigr => k kA.
rewrite subr0 (eq_bigl (fun j : 'I_P => (n <= j)%N)) ?subrK // => j; rewrite inE -leqNgt.
by apply: andb_idr => nj; apply: leq_trans nj; move: kA; rewrite inE.
Qed.
