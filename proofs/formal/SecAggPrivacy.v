(* SecAgg on any graph (spec/secagg.md, section 9): exactly the sums over the components of the honest survivors.
   Claim UNI-COMPONENTS, without secret sharing. *)
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

End Privacy.

(* Any self masks and any pairwise masks opened, as shares of them came or not: selfs i when the self mask of i is known, pairs i
   when all its pairwise masks are; no pairwise mask of the other users. *)
Section Opened.
Variables (G : finZmodType) (N : nat) (nb : rel 'I_N).
Hypothesis nb_sym : symmetric nb.
Variables (U2 C : {set 'I_N}) (selfs pairs : pred 'I_N).
Implicit Types (x : input G N) (r : secret G N).

Definition opened_view x r :=
  ([ffun i => if i \in U2 then upload nb U2 x r i else 0],
   [ffun i => if selfs i then r.1 i else 0],
   [ffun ij : 'I_N * 'I_N => if pairs ij.1 || pairs ij.2 then r.2 ij else 0],
   [ffun i => if i \in C then x i else 0]).

(* The graph on the users whose pairwise masks are not open.  A sum over a component comes out when all its self masks are known. *)
Definition closed := [set i in U2 | ~~ pairs i].
Definition part i := component nb closed set0 i.
Definition opened_allowed x :=
  ([ffun i => if (i \in C) || [&& i \in U2, selfs i & pairs i] then x i else 0],
   [ffun i => if (i \in closed) && [forall j in part i, selfs j] then \sum_(j in part i) x j else 0]).

Lemma part_refl i : i \in closed -> i \in part i.
Proof. by move=> iV; rewrite inE connect0 andbT /H setD0. Qed.

Lemma part_eq i j : j \in part i -> part j = part i.
Proof.
rewrite inE => /andP[_ ij]; apply/setP => k; rewrite !inE; congr (_ && _).
by apply/esym; apply: same_connect ij k; exact: conn_sym.
Qed.

Lemma partP i j : j \in part i -> [/\ j \in U2, ~~ pairs j & j \in closed].
Proof. by rewrite !inE => /andP[/andP[_ /andP[-> ->]]]. Qed.

Lemma rearrange3 (c b e p pd q qd : G) : c + (b + e) + (p + pd) - (q + qd) = c + (e + (pd - qd)) + b + p - q.
Proof.
rewrite opprD -!addrA; congr (_ + _); rewrite addrCA; congr (_ + _); rewrite [p + (pd + _)]addrCA addrCA; congr (_ + _).
by rewrite (addrC (- q)) [p + _]addrCA addrCA.
Qed.

Lemma rearrange4 (c b p pd q qd : G) : c + b + (p + pd) - (q + qd) = c + (b + pd - qd) + (p - q).
Proof. by rewrite opprD -!addrA; do 2!congr (_ + _); rewrite addrCA; congr (_ + _); rewrite addrA addrC. Qed.

(* Inputs with the same allowed values give the same views, when self masks that nobody sees, and masks of pairs that nobody sees,
   are moved by fixed amounts. *)
Lemma opened_moves x x' : opened_allowed x = opened_allowed x' ->
  exists (e : {ffun 'I_N -> G}) (m : {ffun 'I_N * 'I_N -> G}),
  [/\ forall i, i \notin U2 -> e i = 0, forall i, selfs i -> e i = 0, forall ij, pairs ij.1 || pairs ij.2 -> m ij = 0,
      forall ij, (ij.1 \notin U2) || (ij.2 \notin U2) -> m ij = 0
    & forall r, opened_view x' (r.1 + e, r.2 + m) = opened_view x r].
Proof.
move=> [/ffunP own /ffunP sums].
have ownx i : (i \in C) || [&& i \in U2, selfs i & pairs i] -> x i = x' i by move=> iC; move: (own i); rewrite !ffunE iC.
(* one user of a component that has an unknown self mask takes up the whole difference *)
pose sink i := [pick j in part i | ~~ selfs j].
pose e : {ffun 'I_N -> G} := [ffun i => if i \notin U2 then 0 else if pairs i then if selfs i then 0 else x i - x' i
  else if sink i == Some i then \sum_(j in part i) (x j - x' j) else 0].
pose D i := if i \in closed then x i - x' i - e i else 0.
have eE i : i \in closed -> e i = if sink i == Some i then \sum_(j in part i) (x j - x' j) else 0.
  by rewrite inE ffunE => /andP[-> /negPf->].
have [m im fm] : reach nb U2 closed set0 D.
  apply: reach_zero => //; [by apply/subsetP => i; rewrite inE => /andP[] | by move=> i; rewrite /H setD0 /D => /negPf-> |].
  move=> i; rewrite /H setD0 => iV; rewrite -/(part i).
  rewrite (eq_bigr (fun j => (x j - x' j) - e j)) => [|j /partP[_ _ jV]]; last by rewrite /D jV.
  rewrite sumrB [X in _ - X = _](eq_bigr (fun j => if sink i == Some j then \sum_(k in part i) (x k - x' k) else 0)) => [|j ji]; last first.
    by have [_ _ jV] := partP ji; rewrite eE // /sink (part_eq ji).
  rewrite /sink; case: pickP => [j /andP[ji _]|all].
    rewrite [X in _ - X = _](bigD1 j) //= eqxx [X in _ - (_ + X) = _]big1 ?addr0 ?subrr // => k /andP[_ kj].
    by case: eqP => // -[jk]; rewrite jk eqxx in kj.
  rewrite [X in _ - X = _]big1 ?subr0 // sumrB; move: (sums i); rewrite !ffunE iV.
  have -> : [forall j in part i, selfs j] by apply/forall_inP => j ji; move: (all j); rewrite ji /= => /negbFE.
  by move=> /= ->; rewrite subrr.
have bareE i : bare closed set0 i = (i \notin closed) by rewrite /bare in_set0 orbF.
have out i : (i \notin U2) || pairs i -> i \notin closed by rewrite inE negb_and negbK.
have e0 i : selfs i -> e i = 0.
  move=> si; rewrite ffunE si; case: ifP => // _; case: ifP => // _; rewrite /sink.
  by case: pickP => // j /andP[_ sj]; case: eqP => // -[ji]; rewrite ji si in sj.
exists e, m; split.
- by move=> i iU; rewrite ffunE iU.
- exact: e0.
- by move=> ij b; apply: im; rewrite !bareE; case/orP: b => b; apply/orP; [left | right]; apply: out; rewrite b ?orbT.
- by move=> ij b; apply: im; rewrite !bareE; case/orP: b => b; apply/orP; [left | right]; apply: out; rewrite b ?orbT.
move=> r; congr (_, _, _, _); apply/ffunP.
- move=> i; rewrite ![LHS]ffunE ![RHS]ffunE; case: ifP => // iU; rewrite /upload /masked /= ffunE.
  under eq_bigr do rewrite ffunE; under [X in _ - X = _]eq_bigr do rewrite ffunE.
  rewrite !big_split /= rearrange3 -/(flow nb U2 (fun i j => m (i, j)) i) fm //.
  suff -> : x' i + (e i + D i) = x i by [].
  rewrite /D; case: ifP => iV; first by rewrite [e i + _]addrC subrK addrC subrK.
  have pi : pairs i by move: iV; rewrite inE iU => /negbFE.
  rewrite addr0 ffunE iU pi; case: ifP => si; last by rewrite addrC subrK.
  by rewrite addr0 -ownx // iU si pi orbT.
- by move=> i; rewrite ![LHS]ffunE ![RHS]ffunE; case: ifP => // /e0 c; rewrite /= ffunE c addr0.
- move=> ij; rewrite ![LHS]ffunE ![RHS]ffunE; case: ifP => // b; rewrite /= ffunE im ?addr0 // !bareE.
  by case/orP: b => b; apply/orP; [left | right]; apply: out; rewrite b ?orbT.
- by move=> i; rewrite !ffunE; case: ifP => // iC; rewrite ownx ?iC.
Qed.

(* Exactly this is learned: the inputs of users all whose masks are open, and the sums over the components all whose self masks are. *)
(* Carries SAG-24. *)
Theorem opened_exactly : learns_exactly opened_view opened_allowed.
Proof.
split.
  apply: hides_by_moving => x x' /opened_moves [e [m [_ _ _ _ same]]].
  by exists (fun r : secret G N => (r.1 + e, r.2 + m)) => [[b1 m1] [b2 m2] /= [/addIr-> /addIr->]|r].
move=> x x' r r' [/ffunP up /ffunP self /ffunP pair /ffunP own].
have selfE i : selfs i -> r.1 i = r'.1 i by move=> si; move: (self i); rewrite !ffunE si.
have pairE i j : pairs i || pairs j -> r.2 (i, j) = r'.2 (i, j) by move=> b; move: (pair (i, j)); rewrite !ffunE /= b.
congr (_, _); apply/ffunP => i; rewrite !ffunE.
  case: ifP => // /orP[iC|/and3P[iU si pi]]; first by move: (own i); rewrite !ffunE iC.
  move: (up i); rewrite !ffunE iU /upload /masked selfE //.
  rewrite (eq_bigr (fun j => r'.2 (i, j))) => [|j _]; last by rewrite pairE ?pi.
  rewrite [X in _ - X = _](eq_bigr (fun j => r'.2 (j, i))) => [|j _]; last by rewrite pairE ?pi ?orbT.
  by move=> /addIr/addIr/addIr.
case: ifP => // /andP[iV /forall_inP known_self]; pose A := part i.
(* the masks inside a component cancel, and the others are known *)
have subA : A \subset U2 by apply/subsetP => j /partP[].
pose known (s : secret G N) j := s.1 j + \sum_(k in U2 :\: A | nb j k && (j < k)%N) s.2 (j, k)
  - \sum_(k in U2 :\: A | nb j k && (k < j)%N) s.2 (k, j).
have total y s : \sum_(j in A) upload nb U2 y s j = \sum_(j in A) y j + \sum_(j in A) known s j.
  rewrite -big_split /= -[RHS]addr0 -[X in _ = _ + X](masks_cancel nb_sym (fun i j => s.2 (i, j)) A) -big_split /=.
  by apply: eq_bigr => j _; rewrite /upload /masked !(split_sum _ _ subA) rearrange4.
have same_known : \sum_(j in A) known r j = \sum_(j in A) known r' j.
  apply: eq_bigr => j jA; have [jU _ jV] := partP jA.
  have outA k : k \in U2 :\: A -> nb j k -> pairs k.
    rewrite inE => /andP[kA kU] njk; apply: contraR kA => pk.
    have kV : k \in closed by rewrite inE kU.
    rewrite /A /part inE /H setD0 kV; move: jA; rewrite /A /part inE => /andP[_ conn]; apply: connect_trans conn _.
    case: (eqVneq j k) => [->|ne]; first exact: connect0.
    by apply: connect1; rewrite /edge /H setD0 jV kV njk ne.
  rewrite /known selfE ?known_self //; congr (_ + _ - _); apply: eq_bigr => k /andP[kUA /andP[njk _]];
    by rewrite pairE // (outA k kUA njk) ?orbT.
have : \sum_(j in A) upload nb U2 x r j = \sum_(j in A) upload nb U2 x' r' j.
  by apply: eq_bigr => j /partP[jU _ _]; move: (up j); rewrite !ffunE jU.
by rewrite !total same_known => /addIr.
Qed.
End Opened.

(* Only what is known of the users of U2 counts. *)
Lemma opened_ext (G : finZmodType) N (nb : rel 'I_N) (U2 C E : {set 'I_N}) (selfs selfs' pairs pairs' : pred 'I_N) (x : input G N) :
  {in U2, selfs =1 selfs'} -> {in U2, pairs =1 pairs'} -> (forall i, i \in E -> [&& i \in U2, selfs i & pairs i]) ->
  opened_allowed nb U2 C selfs pairs x = opened_allowed nb U2 (C :|: E) selfs' pairs' x.
Proof.
move=> ss pp known; have closedE : closed U2 pairs = closed U2 pairs'.
  by apply/setP => i; rewrite !inE; case: (boolP (i \in U2)) => //= /pp ->.
rewrite /opened_allowed /part -closedE; congr (_, _); apply/ffunP => i; rewrite !ffunE.
  rewrite inE -orbA; congr (if _ || _ then _ else _); case: (boolP (i \in E)) => [/known //|_] /=.
  by case: (boolP (i \in U2)) => //= iU; rewrite ss ?pp.
case: (boolP (i \in closed U2 pairs)) => //= _; congr (if _ then _ else _).
by apply: eq_forallb => j; case: (boolP (j \in _)) => //= /partP [jU _ _]; exact: ss.
Qed.

(* The round that ends with its sum: the self masks of survivors are open, and the pairwise masks of the others. *)
Section Ended.
Variables (G : finZmodType) (N : nat) (nb : rel 'I_N).
Hypothesis nb_sym : symmetric nb.
Variables (U2 U3 C : {set 'I_N}).
Hypothesis sub : U3 \subset U2.

(* Then what comes out are the sums over the components of the honest survivors. *)
Lemma opened_sums (x : input G N) :
  opened_allowed nb U2 C (fun i => (i \in U3) || (i \in C)) (bare U3 C) x = allowed nb U3 C x.
Proof.
have closedE : closed U2 (bare U3 C) = H U3 C.
  apply/setP => i; rewrite !inE /bare negb_or negbK [RHS]andbC.
  by apply: andb_idl => /andP[/(subsetP sub)].
have partE i : part nb U2 (bare U3 C) i = component nb U3 C i.
  by rewrite /part closedE; apply/setP => j; rewrite !inE; congr (_ && _); apply: eq_connect => k l; rewrite /edge /H setD0.
congr (_, _); apply/ffunP => i; rewrite !ffunE.
  rewrite /bare; case: (i \in C); rewrite ?orbT ?orbF //=; by case: (i \in U3); rewrite ?andbF.
rewrite closedE partE; case: (boolP (i \in H U3 C)) => //= _.
by case: forall_inP => // -[]; move=> j; rewrite !inE => /andP[/andP[_ ->]].
Qed.

(* Exactly these sums are learned, when the masked inputs of the honest survivors came. *)
(* Carries SAG-24, SAG-29, UNI-COMPONENTS. *)
Theorem secagg_exactly : learns_exactly (view (G := G) nb U2 U3 C) (allowed nb U3 C).
Proof.
have [hid tel] := opened_exactly G nb_sym U2 C (fun i => (i \in U3) || (i \in C)) (bare U3 C).
split=> [x x'|x x' r r' same]; rewrite -!opened_sums; [exact: hid | exact: tel same].
Qed.

(* Nothing else is learned, whatever the graph, the survivors and the coalition; uploads that came late are in the view. *)
(* Carries SAG-12, SAG-24, UNI-COMPONENTS, BAS-DELAY. *)
Theorem secagg_hides : hides (view (G := G) nb U2 U3 C) (allowed nb U3 C).
Proof. by have [] := secagg_exactly. Qed.

(* A user whose pairwise masks and self mask are both known is exposed: of a user of U2 outside U3 that had no self mask, a late
   upload tells the input. *)
(* Carries SAG-12, BAS-DELAY. *)
Theorem late_without_self_mask (x x' : input G N) (r r' : secret G N) i :
  i \in U2 -> bare U3 C i -> r.1 i = r'.1 i -> view nb U2 U3 C x r = view nb U2 U3 C x' r' -> x i = x' i.
Proof.
move=> iU bi self [/ffunP up _ /ffunP pair _]; move: (up i); rewrite !ffunE iU /upload /masked self.
have p j k : bare U3 C j || bare U3 C k -> r.2 (j, k) = r'.2 (j, k) by move=> b; move: (pair (j, k)); rewrite !ffunE /= b.
rewrite (eq_bigr (fun j => r'.2 (i, j))) => [|j _]; last by rewrite p ?bi.
rewrite [X in _ - X = _](eq_bigr (fun j => r'.2 (j, i))) => [|j _]; last by rewrite p ?bi ?orbT.
by move=> /addIr/addIr/addIr.
Qed.

End Ended.
