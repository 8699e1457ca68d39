(* What a view tells, by counting.  No probability is needed: randomness is uniform on a finite type, so that a view v
   has the probability  ways s v / #|R|  when the secret is s.  Secrets need not be finite, nor have any law. *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section Counting.
Variables (S : Type) (R : finType) (View : eqType) (F : Type).
Variables (V : S -> R -> View) (f : S -> F).

(* In how many ways the randomness gives the view v, when the secret is s. *)
Definition ways (s : S) (v : View) : nat := #|[pred r | V s r == v]|.

(* Exactly f is learned: secrets with one value of f give each view equally often, and a view determines the value of f
   (secrets with different values of f have no view in common). *)
Definition hides := forall s s', f s = f s' -> forall v, ways s v = ways s' v.
Definition tells := forall s s' r r', V s r = V s' r' -> f s = f s'.
Definition learns_exactly := hides /\ tells.

(* To hide it is enough to move the randomness without loss, so that the other secret gives the same view. *)
Lemma hides_by_moving :
  (forall s s', f s = f s' -> exists2 g : R -> R, injective g & forall r, V s' (g r) = V s r) -> hides.
Proof.
move=> moving s s' ff v; have [g injg same] := moving _ _ ff.
by rewrite /ways -!sum1_card [RHS](reindex_inj injg); apply: eq_bigl => r; rewrite !inE same.
Qed.

(* Of two secrets that may not be distinguished, each view of the one is a view of the other. *)
Lemma hides_view s s' : hides -> f s = f s' -> forall r, exists r', V s' r' = V s r.
Proof.
move=> hid ff r; have : (0 < ways s' (V s r))%N by rewrite -(hid _ _ ff); apply/card_gt0P; exists r; rewrite inE.
by case/card_gt0P => r'; rewrite inE => /eqP e; exists r'.
Qed.

(* So nothing but f is in a view, whatever is believed beforehand: the likelihood of a secret is that of f s, or 0. *)
(* Carries UNI-RANK. *)
Lemma learned s r : learns_exactly -> forall s', ways s' (V s r) = ways s (V s r) \/ ways s' (V s r) = 0%N /\ f s' <> f s.
Proof.
move=> [hid tel] s'; have [/eqP|/card_gt0P [r']] := posnP (ways s' (V s r)); last first.
  by rewrite !inE => /eqP /tel ff; left; exact: hid.
move=> zero; right; split=> [|ff]; first exact/eqP.
by move: zero; rewrite (hid _ _ ff) /ways => /eqP/card0_eq /(_ r); rewrite !inE eqxx.
Qed.
End Counting.

(* Who sees less learns no more: a view computed from V hides what V hides. *)
(* Carries UNI-RANK. *)
Lemma hides_less (S : Type) (R : finType) (View View' : eqType) (F : Type) (V : S -> R -> View) (f : S -> F)
  (g : View -> View') : hides V f -> hides (fun s r => g (V s r)) f.
Proof.
move=> hid s s' ff w; pose I := undup ([seq V s r | r <- enum R] ++ [seq V s' r | r <- enum R]).
have seen u r : u = s \/ u = s' -> V u r \in I.
  by case=> ->; rewrite mem_undup mem_cat !(map_f _ (mem_enum R r)) ?orbT.
have bins u : u = s \/ u = s' -> ways (fun s r => g (V s r)) u w = (\sum_(v <- I | g v == w) ways V u v)%N.
  move=> us; rewrite /ways -sum1_card (eq_bigl (fun r => g (V u r) == w)) //.
  under [RHS]eq_bigr do rewrite -sum1_card.
  rewrite (exchange_big_dep (fun r => g (V u r) == w)) /=; last by move=> v r gv; rewrite inE => /eqP ->.
  apply: eq_bigr => r gr; rewrite (big_rem (V u r)) ?seen //= gr inE eqxx /=.
  rewrite big1_seq ?addn0 // => v /andP[/andP[_]]; rewrite inE => /eqP <-.
  by rewrite mem_rem_uniq ?undup_uniq // inE eqxx.
by rewrite !bins; auto; apply: eq_bigr => v _; exact: hid.
Qed.
