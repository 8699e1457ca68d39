(* BASA with the profile settle (spec/basa.md, section 4): exactly the sum over the honest accepted updates is learned,
   for any users that are late or missing.  Claim UNI-BASASETTLE, of a closed epoch, with ideal boxes and masks. *)
From mathcomp Require Import all_ssreflect all_algebra.
From secagg Require Import Counting Basa.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section Privacy.
(* P positions; A are accepted, of Up the server has the upload (late or held back if not in A), C are held by colluders. *)
Variables (G : finZmodType) (P : nat) (A Up C : {set 'I_P}).
Hypothesis accepted_came : A \subset Up.

Definition input := {ffun 'I_P -> G}.                                          (* the weighted updates *)
Definition secret := ({ffun 'I_P -> G} * {ffun 'I_P * 'I_P -> G})%type.        (* self masks, masks between positions *)
Definition upload (v : input) (r : secret) (k : 'I_P) := masked A v r.1 (fun i j => r.2 (i, j)) k.

(* Of each position the server gets one of two keys: the self key of an accepted one, the pair key of any other, which
   opens the masks to it.  Colluders know their self masks, the masks that they sent, and those sent to them. *)
Definition view (v : input) (r : secret) :=
  ([ffun k => if k \in Up then upload v r k else 0],
   [ffun k => if (k \in A) || (k \in C) then r.1 k else 0],
   [ffun ij : 'I_P * 'I_P => if [|| ij.2 \notin A, ij.1 \in C | ij.2 \in C] then r.2 ij else 0],
   [ffun k => if k \in C then v k else 0]).
Definition allowed (v : input) := ([ffun k => if k \in C then v k else 0], \sum_(k in A :\: C) v k).

(* A mask of the amount g from i to j moves g from the one upload to the other, when j is accepted. *)
Definition flow (m : 'I_P -> 'I_P -> G) (k : 'I_P) := \sum_(j < P | (k < j)%N) m k j - \sum_(i in A | (i < k)%N) m i k.
Definition unit_mask (i j : 'I_P) (g : G) : {ffun 'I_P * 'I_P -> G} := [ffun e => if e == (i, j) then g else 0].

Lemma flow_unit (i j k : 'I_P) (g : G) : (i < j)%N -> i \in A -> j \in A ->
  flow (fun a b => unit_mask i j g (a, b)) k = (if k == i then g else 0) - (if k == j then g else 0).
Proof.
move=> ij iA jA; rewrite /flow; congr (_ - _).
- case: eqP => [->|ki]; last by rewrite big1 // => b _; rewrite ffunE xpair_eqE; case: eqP ki.
  rewrite (bigD1 j) //= ffunE eqxx big1 ?addr0 // => b /andP[_ /negPf bj]; by rewrite ffunE xpair_eqE bj andbF.
- case: eqP => [->|/eqP/negPf kj]; last by rewrite big1 // => b _; rewrite ffunE xpair_eqE kj andbF.
  rewrite (bigD1 i) ?iA //= ffunE eqxx big1 ?addr0 // => b /andP[_ /negPf bi]; by rewrite ffunE xpair_eqE bi.
Qed.

Lemma flow_sum (I : Type) (s : seq I) (Q : pred I) (m : I -> {ffun 'I_P * 'I_P -> G}) (k : 'I_P) :
  flow (fun a b => (\sum_(u <- s | Q u) m u) (a, b)) k = \sum_(u <- s | Q u) flow (fun a b => m u (a, b)) k.
Proof.
rewrite /flow sumrB exchange_big [X in _ = _ - X]exchange_big /=.
by congr (_ - _); apply: eq_bigr => j _; rewrite sum_ffunE.
Qed.

(* A difference that sums to zero over the honest accepted positions can be made by masks among these. *)
Lemma reach (D : 'I_P -> G) : (forall k, k \notin A :\: C -> D k = 0) -> \sum_(k in A :\: C) D k = 0 ->
  exists2 m : {ffun 'I_P * 'I_P -> G},
    (forall i j, [|| j \notin A, i \in C | j \in C] -> m (i, j) = 0) & forall k, flow (fun i j => m (i, j)) k = D k.
Proof.
move=> out zero; case: (pickP (mem (A :\: C))) => [u uH|no]; last first.
  exists 0 => [i j _|k]; first by rewrite ffunE.
  rewrite out; last by move: (no k) => /= ->.
  by rewrite /flow !big1 ?subrr // => j _; rewrite ffunE.
(* from each position k move D k to u: by the mask from k to u, or by the one from u to k with the other sign *)
pose m1 (k : 'I_P) := if (k < u)%N then unit_mask k u (D k) else if (u < k)%N then unit_mask u k (- D k) else 0.
exists (\sum_(k in A :\: C) m1 k) => [i j hid|k].
  rewrite sum_ffunE big1 // => k kH; rewrite /m1; move: kH uH; rewrite !inE => /andP[kC kA] /andP[uC uA].
  case: ifP => _; last case: ifP => _; rewrite ffunE // xpair_eqE; case: eqP => // ei; case: eqP => // ej;
    by move: hid; rewrite ei ej ?kA ?uA ?(negPf kC) ?(negPf uC).
have [uC uA] : u \notin C /\ u \in A by move: uH; rewrite !inE => /andP[].
rewrite flow_sum (eq_bigr (fun l => (if k == l then D l else 0) - (if k == u then D l else 0))); last first.
  move=> l; rewrite inE => /andP[lC lA]; rewrite /m1; case: (ltngtP l u) => [lu|ul|/val_inj ->].
  - by rewrite flow_unit.
  - rewrite flow_unit //; case: (k == u); case: (k == l); by rewrite ?subr0 ?sub0r ?opprK ?oppr0 // addrC.
  - by rewrite subrr /flow !big1 ?subrr // => j _; rewrite ffunE.
rewrite sumrB; have -> : \sum_(l in A :\: C) (if k == u then D l else 0) = 0 by case: (k == u); rewrite ?zero ?big1.
rewrite subr0; case: (boolP (k \in A :\: C)) => [kH|kH].
  by rewrite (bigD1 k) //= eqxx big1 ?addr0 // => l /andP[_ /negPf]; rewrite eq_sym => ->.
by rewrite out // big1 // => l lH; case: eqP => // kl; rewrite kl lH in kH.
Qed.

Lemma rearrange5 (c b e p pd z zd : G) : c + (b + e) + (p + pd) - (z + zd) = c + (e + (pd - zd)) + b + p - z.
Proof.
rewrite opprD -!addrA; congr (_ + _); rewrite addrCA; congr (_ + _); rewrite [p + (pd + _)]addrCA addrCA; congr (_ + _).
by rewrite (addrC (- z)) [p + _]addrCA addrCA.
Qed.

(* Carries BAA-12, BAA-16, BAA-20, UNI-BASASETTLE. *)
Theorem basa_hides : hides view allowed.
Proof.
apply: hides_by_moving => v v' [/ffunP own sums].
have ownv k : k \in C -> v k = v' k by move=> kC; move: (own k); rewrite !ffunE kC.
pose D (k : 'I_P) := if k \in A :\: C then v k - v' k else 0.
have [m hid fm] : exists2 m : {ffun 'I_P * 'I_P -> G},
    (forall i j, [|| j \notin A, i \in C | j \in C] -> m (i, j) = 0) & forall k, flow (fun i j => m (i, j)) k = D k.
  apply: reach => [k /negPf kH|]; first by rewrite /D kH.
  rewrite (eq_bigr (fun k => v k - v' k)) => [|k kH]; last by rewrite /D kH.
  by rewrite sumrB sums subrr.
pose e : {ffun 'I_P -> G} := [ffun k => if (k \in A) || (k \in C) then 0 else v k - v' k].
exists (fun r : secret => (r.1 + e, r.2 + m)) => [[b1 m1] [b2 m2] /= [/addIr-> /addIr->] //|r].
congr (_, _, _, _); apply/ffunP.
- move=> k; rewrite !ffunE; case: ifP => // _; rewrite /upload /masked /= ffunE.
  under eq_bigr do rewrite ffunE; under [X in _ - X = _]eq_bigr do rewrite ffunE.
  rewrite !big_split /= rearrange5 -/(flow (fun i j => m (i, j)) k) fm.
  suff -> : v' k + (e k + D k) = v k by [].
  rewrite ffunE /D inE; case: (boolP (k \in C)) => [/ownv ->|_]; first by rewrite orbT !addr0.
  by rewrite orbF; case: (k \in A); rewrite /= ?add0r ?addr0 addrC subrK.
- by move=> k; rewrite !ffunE; case: ifP => // c; rewrite c addr0.
- by move=> [i j]; rewrite !ffunE; case: ifP => // c; rewrite hid ?addr0.
- by move=> k; rewrite !ffunE; case: ifP => // /ownv ->.
Qed.

(* Carries BAA-20, UNI-BASASETTLE. *)
Theorem basa_exactly : learns_exactly view allowed.
Proof.
split; first exact: basa_hides.
move=> v v' r r' [/ffunP up /ffunP self /ffunP pair /ffunP own].
have ownv k : k \in C -> v k = v' k by move=> kC; move: (own k); rewrite !ffunE kC.
have sums : \sum_(k in A) v k = \sum_(k in A) v' k.
  rewrite -(basa_correct A v r.1 (fun i j => r.2 (i, j))) -(basa_correct A v' r'.1 (fun i j => r'.2 (i, j))).
  apply: eq_bigr => k kA; congr (_ - _ - _).
  - by move: (up k); rewrite !ffunE (subsetP accepted_came k kA).
  - by move: (self k); rewrite !ffunE kA.
  - by apply: eq_bigr => j /andP[jA _]; move: (pair (k, j)); rewrite !ffunE /= jA.
congr (_, _); first by apply/ffunP => k; move: (own k); rewrite !ffunE.
have part (y : input) : \sum_(k in A :\: C) y k = \sum_(k in A) y k - \sum_(k in A :&: C) y k.
  by rewrite [X in _ = X - _](big_setID C) /= addrAC subrr add0r.
by rewrite !part sums; congr (_ - _); apply: eq_bigr => k /setIP[_ /ownv].
Qed.
End Privacy.

(* Before the buffer closes, or when it never does, no key is released: nothing of honest updates is learned in the profile
   settle, even when all masks between positions are known. *)
Section Open.
Variables (G : finZmodType) (P : nat) (A Up C : {set 'I_P}).

Definition open_view (v : input G P) (r : secret G P) :=
  ([ffun k => if k \in Up then upload A v r k else 0], [ffun k => if k \in C then r.1 k else 0], r.2,
   [ffun k => if k \in C then v k else 0]).

(* Carries BAA-21, UNI-FAILED, UNI-BASASETTLE. *)
Theorem basa_open : learns_exactly open_view (fun v => [ffun k => if k \in C then v k else 0]).
Proof.
split=> [|v v' r r' [_ _ _]] //; apply: hides_by_moving => v v' /ffunP own.
pose e : {ffun 'I_P -> G} := [ffun k => if k \in C then 0 else v k - v' k].
have eE k : e k = if k \in C then 0 else v k - v' k by rewrite ffunE.
exists (fun r : secret G P => (r.1 + e, r.2)) => [[b1 m1] [b2 m2] /= [/addIr-> ->] //|r].
have sum k : v' k + (r.1 + e) k = v k + r.1 k.
  rewrite ffunE eE; case: ifP => kC; first by move: (own k); rewrite !ffunE kC addr0 => ->.
  by rewrite [r.1 k + _]addrC addrA [v' k + _]addrC subrK.
congr (_, _, _, _); apply/ffunP => k; rewrite ![LHS]ffunE ![RHS]ffunE.
- by case: ifP => // _; rewrite /upload /masked /= sum.
- by case: ifP => // kC; rewrite /= ffunE eE kC addr0.
- by move: (own k); rewrite !ffunE.
Qed.
End Open.
