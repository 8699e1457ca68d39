(* SecAgg: masks cancel for any dropouts (spec/secagg.md, section 5, the two formulas). *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section SecAgg.
(* N users, inputs in any commutative group G (vectors modulo R, say); nb is any graph of neighbours. *)
Variables (G : zmodType) (N : nat) (nb : rel 'I_N).
Hypothesis nb_sym : symmetric nb.
(* x: inputs, b: masks of their own, s i j (i < j): what the pair {i, j} has in common. *)
Variables (x b : 'I_N -> G) (s : 'I_N -> 'I_N -> G).

(* The first formula: the masked input of i, over its neighbours in U2. *)
Definition masked (U2 : {set 'I_N}) (i : 'I_N) : G :=
  x i + b i + \sum_(j in U2 | nb i j && (i < j)%N) s i j - \sum_(j in U2 | nb i j && (j < i)%N) s j i.

(* The second formula: what the server computes from masked inputs y of the survivors U3, the self masks of these, and
   the pairwise masks of U2 \ U3, who dropped out. *)
Definition unmasked (U2 U3 : {set 'I_N}) (y : 'I_N -> G) : G :=
  \sum_(i in U3) (y i - b i) +
  \sum_(i in U2 :\: U3) (\sum_(j in U3 | nb i j && (i < j)%N) s i j - \sum_(j in U3 | nb i j && (j < i)%N) s j i).

(* The masks of any set of users cancel among themselves. *)
Lemma masks_cancel (A : {set 'I_N}) :
  \sum_(i in A) (\sum_(j in A | nb i j && (i < j)%N) s i j - \sum_(j in A | nb i j && (j < i)%N) s j i) = 0.
Proof.
rewrite sumrB; apply/eqP; rewrite subr_eq0; apply/eqP.
rewrite (exchange_big_dep (mem A)) /=; last by move=> i j _ /andP[].
apply: eq_bigr => j jA; apply: eq_bigl => i; by rewrite jA nb_sym.
Qed.

(* Masks between two disjoint sets of users: what A adds, B subtracts. *)
Lemma masks_between (A B : {set 'I_N}) :
  \sum_(i in A) (\sum_(j in B | nb i j && (i < j)%N) s i j - \sum_(j in B | nb i j && (j < i)%N) s j i) =
  - \sum_(i in B) (\sum_(j in A | nb i j && (i < j)%N) s i j - \sum_(j in A | nb i j && (j < i)%N) s j i).
Proof.
rewrite !sumrB opprB; congr (_ - _).
  rewrite (exchange_big_dep (mem B)) /=; last by move=> i j _ /andP[].
  by apply: eq_bigr => j jB; apply: eq_bigl => i; rewrite jB nb_sym.
rewrite (exchange_big_dep (mem B)) /=; last by move=> i j _ /andP[].
by apply: eq_bigr => j jB; apply: eq_bigl => i; rewrite jB nb_sym.
Qed.

Lemma rearrange (a c p3 pd q3 qd : G) : a + c + (p3 + pd) - (q3 + qd) - c = a + (p3 - q3) + (pd - qd).
Proof. by rewrite opprD (addrC a c) -(addrA c a) -(addrA c) [c + _]addrC addrK -addrA addrACA addrA. Qed.

Lemma split_sum (U A : {set 'I_N}) (P : pred 'I_N) (F : 'I_N -> G) : A \subset U ->
  \sum_(j in U | P j) F j = \sum_(j in A | P j) F j + \sum_(j in U :\: A | P j) F j.
Proof.
move=> sub; rewrite (bigID (mem A)) /=; congr (_ + _); apply: eq_bigl => j; rewrite ?inE.
  by case: (boolP (j \in A)) => [/(subsetP sub)->|]; rewrite ?andbF ?andbT.
by case: (j \in U); case: (P j); rewrite ?andbF ?andbT.
Qed.

(* For every graph, all survivors U3 among U2, all inputs and masks: the server gets the sum of the inputs of U3. *)
(* Carries SAG-12, SAG-29, BAS-EQ19, BASA-EQ4, HET-EQ5. *)
Theorem secagg_correct (U2 U3 : {set 'I_N}) :
  U3 \subset U2 -> unmasked U2 U3 (masked U2) = \sum_(i in U3) x i.
Proof.
move=> sub.
rewrite /unmasked masks_between.
under eq_bigr do rewrite /masked !(split_sum _ _ sub) rearrange.
by rewrite big_split /= big_split /= masks_cancel addr0 addrK.
Qed.
End SecAgg.
