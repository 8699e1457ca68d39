(* BASA with the profile void, without self masks (spec/basa.md, sections 1 and 4): as long as an honest user is to come nothing
   is learned, and else one sum.  Claims BASA-EQ8, UNI-BASAVOID. *)
From mathcomp Require Import all_ssreflect all_algebra.
From secagg Require Import Counting Basa BasaPrivacy.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section Void.
(* P positions; the first n have an upload, the last of them late perhaps; of those in C the coalition has the key. *)
Variables (G : finZmodType) (P n : nat) (C : {set 'I_P}).
Definition came : {set 'I_P} := [set k : 'I_P | (k < n)%N].

Definition void_upload (v : input G P) (m : {ffun 'I_P * 'I_P -> G}) (k : 'I_P) :=
  masked came v (fun=> 0) (fun i j => m (i, j)) k.
Definition void_view (v : input G P) (m : {ffun 'I_P * 'I_P -> G}) :=
  ([ffun k => if k \in came then void_upload v m k else 0],
   [ffun ij : 'I_P * 'I_P => if (ij.1 \in C) || (ij.2 \in C) then m ij else 0],
   [ffun k => if k \in C then v k else 0]).

Lemma void_flow v m k : void_upload v m k = v k + flow came (fun i j => m (i, j)) k.
Proof. by rewrite /void_upload /masked /flow addr0 addrA. Qed.

Lemma flowD (m m' : {ffun 'I_P * 'I_P -> G}) k : flow came (fun i j => (m + m') (i, j)) k =
  flow came (fun i j => m (i, j)) k + flow came (fun i j => m' (i, j)) k :> G.
Proof.
have mE i j : (m + m') (i, j) = m (i, j) + m' (i, j) by rewrite ffunE.
by rewrite /flow (eq_bigr _ (fun j _ => mE k j)) [X in _ - X = _](eq_bigr _ (fun i _ => mE i k)) !big_split /= opprD addrACA.
Qed.

(* A position without an upload, whose key the coalition does not have: nothing of honest updates is learned. *)
(* Carries BAA-17, BAA-21, BASA-EQ8, UNI-BASAVOID. *)
Theorem void_to_come j : j \notin came -> j \notin C -> learns_exactly void_view (fun v => [ffun k => if k \in C then v k else 0]).
Proof.
move=> jn jC; split=> [|v v' m m' [_ _]] //; apply: hides_by_moving => v v' /ffunP own.
have ownv k : k \in C -> v k = v' k by move=> kC; move: (own k); rewrite !ffunE kC.
pose e : {ffun 'I_P * 'I_P -> G} := [ffun ij => if ij.2 == j then v ij.1 - v' ij.1 else 0].
have eE i k : e (i, k) = if k == j then v i - v' i else 0 by rewrite ffunE.
exists (+%R^~ e) => [m m'|m]; first exact: addIr.
have shift k : k \in came -> flow came (fun i l => e (i, l)) k = v k - v' k.
  move=> kn; have kj : (k < j)%N by apply: leq_trans (_ : n <= j)%N; move: kn jn; rewrite !inE -?leqNgt.
  rewrite /flow [X in _ - X]big1 ?subr0 => [|i _]; last first.
    by rewrite eE; case: eqP => // e2; move: kj; rewrite e2 ltnn.
  rewrite (bigD1 j) //= eE eqxx big1 ?addr0 // => l /andP[_ /negPf lj]; by rewrite eE lj.
congr (_, _, _); apply/ffunP.
- move=> k; rewrite ![LHS]ffunE ![RHS]ffunE; case: ifP => // kn.
  by rewrite !void_flow flowD shift // addrCA [v' k + _]addrC subrK addrC.
- move=> [i k]; rewrite ![LHS]ffunE ![RHS]ffunE /=; case: ifP => // c; rewrite ffunE.
  suff -> : e (i, k) = 0 by rewrite addr0.
  rewrite eE; case: eqP => // kj; move: c; rewrite kj (negPf jC) orbF => /ownv ->; exact: subrr.
- by move=> k; move: (own k); rewrite !ffunE.
Qed.

(* Else, when each position has an upload or a key that the coalition has, exactly the sum over the honest uploads is learned. *)
(* Carries BAA-17, BAA-21, BASA-EQ8, UNI-BASAVOID. *)
Theorem void_one_sum : (forall j, j \notin came -> j \in C) -> learns_exactly void_view (allowed came C).
Proof.
move=> none; split=> [|v v' m m' [/ffunP up /ffunP pair /ffunP own]].
  apply: hides_by_moving => v v' [/ffunP own sums].
  have ownv k : k \in C -> v k = v' k by move=> kC; move: (own k); rewrite !ffunE kC.
  pose D (k : 'I_P) := if k \in came :\: C then v k - v' k else 0.
  have [e hid fe] : exists2 e : {ffun 'I_P * 'I_P -> G},
      (forall i j, [|| j \notin came, i \in C | j \in C] -> e (i, j) = 0) & forall k, flow came (fun i j => e (i, j)) k = D k.
    apply: reach => [k /negPf kH|]; first by rewrite /D kH.
    rewrite (eq_bigr (fun k => v k - v' k)) => [|k kH]; last by rewrite /D kH.
    by rewrite sumrB sums subrr.
  exists (+%R^~ e) => [m m'|m]; first exact: addIr.
  congr (_, _, _); apply/ffunP.
  - move=> k; rewrite ![LHS]ffunE ![RHS]ffunE; case: ifP => // kn; rewrite !void_flow flowD fe /D inE kn andbT.
    case: (boolP (k \in C)) => [/ownv -> |_] /=; first by rewrite addr0.
    by rewrite addrCA [v' k + _]addrC subrK addrC.
  - move=> [i k]; rewrite ![LHS]ffunE ![RHS]ffunE /=; case: ifP => // c; by rewrite ffunE hid ?addr0 // orbC c.
  - by move=> k; move: (own k); rewrite !ffunE.
have ownv k : k \in C -> v k = v' k by move=> kC; move: (own k); rewrite !ffunE kC.
congr (_, _); first by apply/ffunP => k; move: (own k); rewrite !ffunE.
have sums : \sum_(k in came) v k = \sum_(k in came) v' k.
  rewrite -(basa_correct came v (fun=> 0) (fun i j => m (i, j))) -(basa_correct came v' (fun=> 0) (fun i j => m' (i, j))).
  apply: eq_bigr => k kn; congr (_ - _ - _); first by move: (up k); rewrite !ffunE kn.
  by apply: eq_bigr => j /andP[/none jC _]; move: (pair (k, j)); rewrite !ffunE /= jC orbT.
have part (y : input G P) : \sum_(k in came :\: C) y k = \sum_(k in came) y k - \sum_(k in came :&: C) y k.
  by rewrite [X in _ = X - _](big_setID C) /= addrAC subrr add0r.
by rewrite !part sums; congr (_ - _); apply: eq_bigr => k /setIP[_ /ownv].
Qed.
End Void.
