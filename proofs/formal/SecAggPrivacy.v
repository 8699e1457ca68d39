(* SecAgg on any graph (spec/secagg.md, section 9): exactly the sums over the components of the honest survivors.
   Claim UNI-COMPONENTS (for users of whom fewer than t neighbours collude). *)
From mathcomp Require Import all_ssreflect all_algebra.
From secagg Require Import Counting Masks.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section Privacy.
(* N users, inputs in any finite commutative group, any graph; U2 shared secrets, U3 of them survive, C collude. *)
Variables (G : finZmodType) (N : nat) (nb : rel 'I_N).
Hypothesis nb_sym : symmetric nb.
Variables (U2 U3 C : {set 'I_N}).

Definition input := {ffun 'I_N -> G}.
Definition secret := ({ffun 'I_N -> G} * {ffun 'I_N * 'I_N -> G})%type.   (* self masks; mask of the pair (i, j), i < j *)
Definition upload (x : input) (r : secret) i := masked nb x r.1 (fun i j => r.2 (i, j)) U2 i.

(* Unmasking reveals the self masks of survivors and the pairwise masks of the others; the users of C know their own. *)
Definition bare i := (i \notin U3) || (i \in C).
Definition view (x : input) (r : secret) :=
  ([ffun i => if i \in U2 then upload x r i else 0],
   [ffun i => if (i \in U3) || (i \in C) then r.1 i else 0],
   [ffun ij : 'I_N * 'I_N => if bare ij.1 || bare ij.2 then r.2 ij else 0],
   [ffun i => if i \in C then x i else 0]).

(* The graph on the honest survivors, and the component of a user in it. *)
Definition H := U3 :\: C.
Definition edge i j := [&& i \in H, j \in H & nb i j && (i != j)].
Definition component i := [set j in H | connect edge i j].
Definition allowed (x : input) :=
  ([ffun i => if i \in C then x i else 0], [ffun i => if i \in H then \sum_(j in component i) x j else 0]).

Lemma edge_sym : symmetric edge.
Proof. by move=> i j; rewrite /edge nb_sym andbCA eq_sym. Qed.
Lemma conn_sym : connect_sym edge. Proof. exact: (sym_connect_sym edge_sym). Qed.

(* What masks m of pairs do to the uploads, when only pairs of honest survivors have one. *)
Definition flow (m : 'I_N -> 'I_N -> G) i :=
  \sum_(j in U2 | nb i j && (i < j)%N) m i j - \sum_(j in U2 | nb i j && (j < i)%N) m j i.

(* One edge moves any amount g from its one end to the other. *)
Definition inside (m : {ffun 'I_N * 'I_N -> G}) := forall ij, bare ij.1 || bare ij.2 -> m ij = 0.
Definition reach (D : 'I_N -> G) := exists2 m : {ffun 'I_N * 'I_N -> G}, inside m & forall i, i \in U2 -> flow (fun i j => m (i, j)) i = D i.

Lemma reach0 : reach (fun=> 0).
Proof.
exists 0 => [ij _|i _]; first by rewrite ffunE.
by rewrite /flow !big1 ?subrr // => j _; rewrite ffunE.
Qed.

Lemma reachD D D' : reach D -> reach D' -> reach (fun i => D i + D' i).
Proof.
move=> [m im fm] [m' im' fm']; exists (m + m') => [ij b|i iU]; first by rewrite ffunE im ?im' ?addr0.
rewrite -fm // -fm' // /flow -addrACA -opprD -!big_split /=.
by congr (_ - _); apply: eq_bigr => j _; rewrite ffunE.
Qed.

Lemma reachS (I : finType) (P : pred I) (D : I -> 'I_N -> G) :
  (forall k, P k -> reach (D k)) -> reach (fun i => \sum_(k | P k) D k i).
Proof.
move=> all; elim: (index_enum I) => [|k s [m im fm]].
  by have [m im fm] := reach0; exists m => // i /fm ->; rewrite big_nil.
case Pk: (P k); last by exists m => // i /fm ->; rewrite big_cons Pk.
have [n inn fn] := reachD (all k Pk) (ex_intro2 _ _ m im fm : reach _).
by exists n => // i /fn ->; rewrite big_cons Pk.
Qed.

Lemma reach_ext D D' : (forall i, D i = D' i) -> reach D -> reach D'.
Proof. by move=> e [m im fm]; exists m => // i /fm ->. Qed.

Definition move (g : G) (u v : 'I_N) i := (if i == u then g else 0) - (if i == v then g else 0).

Hypothesis sub : U3 \subset U2.

Lemma reach_edge g u v : edge u v -> reach (move g u v).
Proof.
wlog uv : u v g / (u < v)%N.
  move=> wl e; case: (ltngtP u v) => [|vu|/val_inj uv]; [by move/wl; exact| |].
    have := wl v u (- g) vu; rewrite edge_sym => /(_ e); apply: reach_ext => i; rewrite /move.
    by case: (i == u); case: (i == v); rewrite ?oppr0 ?opprK ?subr0 ?sub0r ?addNr ?subrr ?add0r ?addr0.
  by move: e; rewrite /edge uv eqxx !andbF.
case/and3P => uH vH /andP[nbuv _].
have [uU vU] : u \in U2 /\ v \in U2.
  by split; apply: (subsetP sub); [case/setDP: uH | case/setDP: vH].
exists [ffun ij => if ij == (u, v) then g else 0] => [[i j] /=|i iU].
  rewrite ffunE; case: eqP => // -[-> ->].
  by move: uH vH; rewrite !inE /bare => /andP[/negPf-> ->] /andP[/negPf-> ->].
rewrite /flow /move; congr (_ - _).
- case: eqP => [->|ne]; last by rewrite big1 // => j _; rewrite ffunE xpair_eqE; case: eqP.
  rewrite (bigD1 v) /=; last by rewrite vU nbuv uv.
  by rewrite ffunE eqxx big1 ?addr0 // => j /andP[_ /negPf jv]; rewrite ffunE xpair_eqE jv andbF.
- case: eqP => [->|ne]; last by rewrite big1 // => j _; rewrite ffunE xpair_eqE; case: (i == v) / eqP; rewrite ?andbF.
  rewrite (bigD1 u) /=; last by rewrite uU nb_sym nbuv uv.
  by rewrite ffunE eqxx big1 ?addr0 // => j /andP[_ /negPf ju]; rewrite ffunE xpair_eqE ju.
Qed.

Lemma reach_path g u v : connect edge u v -> reach (move g u v).
Proof.
case/connectP => p; elim: p u => [|w p IH] u /=; first by move=> _ ->; apply: reach_ext reach0 => i; rewrite /move subrr.
move=> /andP[e pth] last; apply: reach_ext (reachD (reach_edge g e) (IH w pth last)) => i.
by rewrite /move addrA subrK.
Qed.

(* Differences with the sum zero on each component are differences that masks can make. *)
Lemma reach_zero (D : 'I_N -> G) :
  (forall i, i \notin H -> D i = 0) -> (forall i, i \in H -> \sum_(j in component i) D j = 0) -> reach D.
Proof.
move=> out zero; pose rt := fingraph.root edge.
apply: (@reach_ext (fun i => \sum_(u in H) move (D u) u (rt u) i)); last first.
  by apply: reachS => u _; apply: reach_path; exact: connect_root.
move=> i; rewrite /move sumrB -[RHS]subr0; congr (_ - _).
- case: (boolP (i \in H)) => [iH|iH].
    by rewrite (bigD1 i) //= eqxx big1 ?addr0 // => u /andP[_ /negPf]; rewrite eq_sym => ->.
  rewrite big1 ?out // => u uH; case: eqP => // iu; by move: iH; rewrite iu uH.
- rewrite -big_mkcondr /=; case: (pickP [pred u in H | i == rt u]) => [u /andP[uH /eqP iu]|no]; last first.
    by rewrite big_pred0 // => u; exact: no.
  rewrite -[RHS](zero u uH); apply: eq_bigl => j; rewrite !inE.
  by rewrite -root_connect ?iu //; exact: conn_sym.
Qed.

Lemma rearrange3 (c b e p pd q qd : G) : c + (b + e) + (p + pd) - (q + qd) = c + (e + (pd - qd)) + b + p - q.
Proof.
rewrite opprD -!addrA; congr (_ + _); rewrite addrCA; congr (_ + _); rewrite [p + (pd + _)]addrCA addrCA; congr (_ + _).
by rewrite (addrC (- q)) [p + _]addrCA addrCA.
Qed.

Lemma rearrange4 (c b p pd q qd : G) : c + b + (p + pd) - (q + qd) = c + (b + pd - qd) + (p - q).
Proof. by rewrite opprD -!addrA; do 2!congr (_ + _); rewrite addrCA; congr (_ + _); rewrite addrA addrC. Qed.

(* Inputs with the same allowed values give the same views, when self masks that nobody sees, and masks of pairs of honest
   survivors, are moved by fixed amounts. *)
Lemma secagg_moves x x' : allowed x = allowed x' ->
  exists (e : {ffun 'I_N -> G}) (m : {ffun 'I_N * 'I_N -> G}),
  [/\ forall i, (i \in U3) || (i \in C) -> e i = 0, inside m & forall r : secret, view x' (r.1 + e, r.2 + m) = view x r].
Proof.
move=> [/ffunP own /ffunP sums].
have ownx i : i \in C -> x i = x' i by move=> iC; move: (own i); rewrite !ffunE iC.
pose D i := if i \in H then x i - x' i else 0.
have [m im fm] : reach D.
  apply: reach_zero => i iH; first by rewrite /D (negPf iH).
  have inH j : j \in component i -> D j = x j - x' j by rewrite inE /D => /andP[->].
  rewrite (eq_bigr _ inH) sumrB; move: (sums i); rewrite !ffunE iH => ->; exact: subrr.
(* users who dropped out keep what they sent by moving their self masks, which nobody sees *)
pose e := [ffun i => if (i \in U3) || (i \in C) then 0 else x i - x' i].
exists e, m; split=> // [i iUC|r]; first by rewrite ffunE iUC.
congr (_, _, _, _); apply/ffunP.
- move=> i; rewrite !ffunE; case: ifP => // iU; rewrite /upload /masked /= ffunE.
  under eq_bigr do rewrite ffunE; under [X in _ - X = _]eq_bigr do rewrite ffunE.
  rewrite !big_split /= rearrange3 -/(flow (fun i j => m (i, j)) i) fm //.
  suff -> : x' i + (e i + D i) = x i by [].
  rewrite ffunE /D /H inE; case: (boolP (i \in C)) => [/ownx ->|_]; first by rewrite orbT !addr0.
  by rewrite orbF; case: (i \in U3) => /=; [rewrite add0r | rewrite addr0]; rewrite addrC subrK.
- by move=> i; rewrite !ffunE; case: ifP => // c; rewrite c addr0.
- by move=> [i j]; rewrite !ffunE; case: ifP => // ij; rewrite im ?addr0.
- by move=> i; rewrite !ffunE; case: ifP => // /ownx ->.
Qed.

(* Nothing else is learned, whatever the graph, the survivors and the coalition; uploads that came late are in the view. *)
(* Carries SAG-12, SAG-24, UNI-COMPONENTS, BAS-DELAY. *)
Theorem secagg_hides : hides view allowed.
Proof.
apply: hides_by_moving => x x' /secagg_moves [e [m [_ _ same]]].
by exists (fun r : secret => (r.1 + e, r.2 + m)) => [[b1 m1] [b2 m2] /= [/addIr-> /addIr->]|r].
Qed.

(* A user whose pairwise masks and self mask are both known is exposed: of a user of U2 outside U3 that had no self mask, a late
   upload tells the input. *)
(* Carries SAG-12, BAS-DELAY. *)
Theorem late_without_self_mask (x x' : input) (r r' : secret) i :
  i \in U2 -> bare i -> r.1 i = r'.1 i -> view x r = view x' r' -> x i = x' i.
Proof.
move=> iU bi self [/ffunP up _ /ffunP pair _]; move: (up i); rewrite !ffunE iU /upload /masked self.
have p j k : bare j || bare k -> r.2 (j, k) = r'.2 (j, k) by move=> b; move: (pair (j, k)); rewrite !ffunE /= b.
rewrite (eq_bigr (fun j => r'.2 (i, j))) => [|j _]; last by rewrite p ?bi.
rewrite [X in _ - X = _](eq_bigr (fun j => r'.2 (j, i))) => [|j _]; last by rewrite p ?bi ?orbT.
by move=> /addIr/addIr/addIr.
Qed.

(* And that much is learned, when the masked inputs of the honest survivors came. *)
(* Carries SAG-24, SAG-29, UNI-COMPONENTS. *)
Theorem secagg_exactly : learns_exactly view allowed.
Proof.
split; first exact: secagg_hides.
move=> x x' r r' [/ffunP up /ffunP self /ffunP pair /ffunP own].
congr (_, _); apply/ffunP => i; rewrite !ffunE; first by move: (own i); rewrite !ffunE.
case: ifP => // iH; pose A := component i.
(* the masks inside a component cancel, and the others are known *)
have subA : A \subset U2 by apply/subsetP => j; rewrite !inE => /andP[/andP[_ /(subsetP sub)]].
have AU j : j \in A -> [/\ j \in U2, j \in U3 & j \notin C].
  by rewrite !inE => /andP[/andP[jC jU] _]; rewrite (subsetP sub) ?jU.
pose known (s : secret) j := s.1 j + \sum_(k in U2 :\: A | nb j k && (j < k)%N) s.2 (j, k)
  - \sum_(k in U2 :\: A | nb j k && (k < j)%N) s.2 (k, j).
have total (y : input) (s : secret) : \sum_(j in A) upload y s j = \sum_(j in A) y j + \sum_(j in A) known s j.
  rewrite -big_split /= -[RHS]addr0 -[X in _ = _ + X](masks_cancel nb_sym (fun i j => s.2 (i, j)) A) -big_split /=.
  by apply: eq_bigr => j _; rewrite /upload /masked !(split_sum _ _ subA) rearrange4.
have same_known : \sum_(j in A) known r j = \sum_(j in A) known r' j.
  apply: eq_bigr => j jA; have [jU2 jU3 jC] := AU j jA.
  have e1 : r.1 j = r'.1 j by move: (self j); rewrite !ffunE jU3.
  have e2 k : k \in U2 :\: A -> nb j k -> bare k.
    rewrite inE => /andP[kA kU] njk; apply: contraR kA; rewrite negb_or negbK => /andP[kU3 kC].
    have kH : k \in H by rewrite inE kC kU3.
    rewrite inE kH; move: jA; rewrite inE => /andP[jH conn]; apply: connect_trans conn _.
    case: (eqVneq j k) => [->|ne]; first exact: connect0.
    by apply: connect1; rewrite /edge jH kH njk ne.
  rewrite /known e1; congr (_ + _ - _); apply: eq_bigr => k /andP[kUA /andP[njk _]].
    by move: (pair (j, k)); rewrite !ffunE /= (e2 _ kUA njk) orbT.
  by move: (pair (k, j)); rewrite !ffunE /= (e2 _ kUA njk).
have : \sum_(j in A) upload x r j = \sum_(j in A) upload x' r' j.
  by apply: eq_bigr => j /AU [jU _ _]; move: (up j); rewrite !ffunE jU.
by rewrite !total same_known => /addIr.
Qed.
End Privacy.
