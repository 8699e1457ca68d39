(* SecAgg with its secret sharing (spec/secagg.md, sections 1, 5 and 9; spec/conventions.md, section 11): the thresholds.  A
   user's self mask, and its masks with others (in the protocol: the key that they come from), are shared among its holders. *)
From mathcomp Require Import all_ssreflect all_algebra.
From secagg Require Import Counting Masks Code SecAggPrivacy.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section Shamir.
Variables (F : finFieldType) (N p L : nat) (a : 'I_N -> F).
Hypotheses (a_inj : injective a) (a_neq0 : forall j, a j != 0).

(* SHM-04: the value at the point of j of the polynomial with the secret s at 0 and the p = t - 1 coefficients c. *)
Definition shamir (s : 'M[F]_(1, L)) (c : 'M[F]_(p, L)) j := share a (col_mx s c) j.

(* SHM-12, UNI-SHAMIR: t - 1 shares are uniform, whatever the secret is. *)
(* Carries SHM-04, SHM-12, UNI-SHAMIR. *)
Theorem shamir_privacy (u : 'I_p -> 'I_N) s v : injective u -> #|[pred c | [ffun i => shamir s c (u i)] == v]| = 1%N.
Proof. exact: t_privacy. Qed.

(* SHM-08: t shares, or more, give the secret back. *)
(* Carries SHM-04, SHM-08, UNI-SHAMIR. *)
Theorem shamir_recovery (A : {set 'I_N}) s s' c c' :
  (p < #|A|)%N -> (forall j, j \in A -> shamir s c j = shamir s' c' j) -> s = s'.
Proof. by move=> le same; have /(@eq_col_mx _ 1 p L)[] := recovery a_inj (U := 1 + p) le same. Qed.

(* For p holders at most there are coefficients with which their shares of a secret z are zero. *)
Lemma quiet (A : {set 'I_N}) z : (p <= N)%N -> (#|A| <= p)%N -> exists c, [forall j in A, shamir z c j == 0].
Proof.
move=> pN leA; have [A' sub cA] : exists2 A' : {set 'I_N}, A \subset A' & #|A'| = p.
  pose k := (p - #|A|)%N; pose s := take k (enum (~: A)).
  have szs : size s = k by rewrite size_takel // -cardE cardsCs setCK card_ord leq_sub2r.
  have us : uniq s by rewrite take_uniq ?enum_uniq.
  have dis i : i \in s -> i \notin A by move/mem_take; rewrite mem_enum inE.
  exists (A :|: [set i in s]); first exact: subsetUl.
  rewrite cardsU (_ : A :&: _ = set0) ?cards0 ?subn0; last first.
    by apply/setP => i; rewrite !inE; apply/negP => /andP[iC /dis]; rewrite iC.
  by rewrite cardsE (card_uniqP us) szs subnKC.
pose u (i : 'I_p) : 'I_N := enum_val (cast_ord (esym cA) i).
have inju : injective u by move=> i j /enum_val_inj/cast_ord_inj.
have /eqP := shamir_privacy z 0 inju; rewrite eqn_leq => /andP[_ /card_gt0P [c]]; rewrite inE => /eqP/ffunP zero.
exists c; apply/forall_inP => j /(subsetP sub) jA; have := zero (cast_ord cA (enum_rank_in jA j)).
by rewrite !ffunE /u cast_ordK enum_rankK_in // => ->.
Qed.

Definition psi (A : {set 'I_N}) z := if z == 0 then 0 else odflt 0 [pick c | [forall j in A, shamir z c j == 0]].

Lemma psi0 A : psi A 0 = 0. Proof. by rewrite /psi eqxx. Qed.
Lemma psiP (A : {set 'I_N}) z j : (p <= N)%N -> (#|A| <= p)%N -> j \in A -> shamir z (psi A z) j = 0.
Proof.
move=> pN leA jA; rewrite /psi; case: eqP => [->|_]; first by rewrite /shamir col_mx0 share0.
case: pickP => [c /forall_inP /(_ j jA)/eqP //|no]; by have [c] := quiet z pN leA; rewrite no.
Qed.

Section Round.
(* As in SecAggPrivacy.v; U5 answered.  enc carries a mask as elements of the field. *)
Variables (G : finZmodType) (enc : G -> 'M[F]_(1, L)) (nb : rel 'I_N).
Hypotheses (nb_sym : symmetric nb) (enc_inj : injective enc).
Variables (U2 U3 U5 C : {set 'I_N}).
Hypothesis sub : U3 \subset U2.

(* The holders of the secrets of i: itself and its neighbours; and those of them in a set. *)
Definition holders i (A : {set 'I_N}) := [set j in A | (j == i) || nb i j].
Definition input := {ffun 'I_N -> G}.
(* the masks, and the coefficients under which i shares its self mask, and the mask of the pair e *)
Definition secret := (SecAggPrivacy.secret G N * {ffun 'I_N -> 'M[F]_(p, L)} * {ffun 'I_N * ('I_N * 'I_N) -> 'M[F]_(p, L)})%type.

Definition self_share (r : secret) i j := shamir (enc (r.1.1.1 i)) (r.1.2 i) j.
Definition key_share (r : secret) i e j := shamir (enc (r.1.1.2 e)) (r.2 (i, e)) j.

(* The uploads of U2; of each user of U2 the shares that its colluding holders have, and those that the holders in U5 answer:
   of the self mask of a survivor, of the pairwise masks of any other; and all that colluders know of their own. *)
Definition view (x : input) (r : secret) :=
  ([ffun i => if i \in U2 then upload nb U2 x r.1.1 i else 0],
   [ffun ij : 'I_N * 'I_N => if (ij.1 \in U2) && (ij.2 \in holders ij.1 ((if ij.1 \in U3 then U5 else set0) :|: C))
                             then self_share r ij.1 ij.2 else 0],
   [ffun ije : 'I_N * 'I_N * ('I_N * 'I_N) =>
      if [&& ije.1.1 \in U2, (ije.2.1 == ije.1.1) || (ije.2.2 == ije.1.1)
           & ije.1.2 \in holders ije.1.1 ((if ije.1.1 \in U3 then set0 else U5) :|: C)]
      then key_share r ije.1.1 ije.2 ije.1.2 else 0],
   [ffun i => if i \in C then x i else 0],
   [ffun i => if i \in C then (r.1.1.1 i, r.1.2 i) else (0, 0)],
   [ffun e : 'I_N * 'I_N => if (e.1 \in C) || (e.2 \in C) then r.1.1.2 e else 0],
   [ffun ie : 'I_N * ('I_N * 'I_N) =>
      if (ie.1 \in C) && ((ie.2.1 == ie.1) || (ie.2.2 == ie.1)) then r.2 ie else 0]).

Lemma shareP s s' c c' j : shamir (s + s') (c + c') j = shamir s c j + shamir s' c' j.
Proof. by rewrite /shamir -shareD add_col_mx. Qed.

Lemma moved (A : {set 'I_N}) (g d : G) c j : (p <= N)%N -> (d != 0 -> (#|A| <= p)%N /\ j \in A) ->
  shamir (enc (g + d)) (c + psi A (enc (g + d) - enc g)) j = shamir (enc g) c j.
Proof.
move=> pN; case: (eqVneq d 0) => [-> _|_ /(_ isT) [leA jA]]; first by rewrite addr0 subrr psi0 addr0.
by rewrite -{1}[enc (g + d)](subrK (enc g)) [_ + enc g]addrC shareP psiP ?addr0.
Qed.

(* The self mask, and the pairwise masks, of a user whose shares reach t. *)
Definition self_open i := (i \in C) || (p < #|holders i ((if i \in U3 then U5 else set0) :|: C)|)%N.
Definition pair_open i := (i \in C) || (p < #|holders i ((if i \in U3 then set0 else U5) :|: C)|)%N.
Local Notation opened := (opened_allowed nb U2 C self_open pair_open).

(* Masks that are not open can be moved, and their shares with them. *)
Lemma shares_follow (x x' : input) (e : {ffun 'I_N -> G}) (m : {ffun 'I_N * 'I_N -> G}) : (p <= N)%N ->
  (forall i, i \in U2 -> self_open i -> e i = 0) -> (forall i, i \in C -> e i = 0) ->
  (forall ij, pair_open ij.1 || pair_open ij.2 -> m ij = 0) ->
  (forall r i, i \in U2 -> upload nb U2 x' (r.1 + e, r.2 + m) i = upload nb U2 x r i) -> (forall i, i \in C -> x' i = x i) ->
  exists2 g : secret -> secret, injective g & forall r, view x' (g r) = view x r.
Proof.
move=> pN e0 eC m0 up own; pose hs i := holders i ((if i \in U3 then U5 else set0) :|: C).
pose hp i := holders i ((if i \in U3 then set0 else U5) :|: C).
pose g (r : secret) : secret := ((r.1.1.1 + e, r.1.1.2 + m),
  [ffun i => r.1.2 i + psi (hs i) (enc (r.1.1.1 i + e i) - enc (r.1.1.1 i))],
  [ffun ie => r.2 ie + psi (hp ie.1) (enc (r.1.1.2 ie.2 + m ie.2) - enc (r.1.1.2 ie.2))]).
have cE s i : (g s).1.2 i = s.1.2 i + psi (hs i) (enc (s.1.1.1 i + e i) - enc (s.1.1.1 i)) by exact: ffunE.
have kE s i : (g s).2 i = s.2 i + psi (hp i.1) (enc (s.1.1.2 i.2 + m i.2) - enc (s.1.1.2 i.2)) by exact: ffunE.
have injg : injective g.
  move=> r1 r2 same12; have [b12 m12] : r1.1.1.1 = r2.1.1.1 /\ r1.1.1.2 = r2.1.1.2.
    split; first by apply: (@addIr _ e); exact: (congr1 (fun s : secret => s.1.1.1) same12).
    by apply: (@addIr _ m); exact: (congr1 (fun s : secret => s.1.1.2) same12).
  have inj (c : 'M[F]_(p, L)) : injective (+%R^~ c) := addIr c.
  have cb12 : r1.1.2 = r2.1.2.
    apply/ffunP => i; apply: inj (psi (hs i) (enc (r2.1.1.1 i + e i) - enc (r2.1.1.1 i))) _ _ _.
    by rewrite -(cE r2) -same12 cE b12.
  have ck12 : r1.2 = r2.2.
    apply/ffunP => i; apply: inj (psi (hp i.1) (enc (r2.1.1.2 i.2 + m i.2) - enc (r2.1.1.2 i.2))) _ _ _.
    by rewrite -(kE r2) -same12 kE m12.
  by move: b12 m12 cb12 ck12; case: r1 r2 {same12} => [[[? ?] ?] ?] [[[? ?] ?] ?] /= -> -> -> ->.
exists g => // r.
have few A i j : (i \in C) || (p < #|holders i A|)%N = false -> j \in holders i A -> (#|holders i A| <= p)%N /\ j \in holders i A.
  by move=> /negbT; rewrite negb_or -leqNgt => /andP[].
congr (_, _, _, _, _, _, _); apply/ffunP.
- by move=> i; rewrite !ffunE; case: ifP => // iU; exact: up.
- move=> [i j]; rewrite !ffunE /=; case: ifP => // /andP[iU jh]; rewrite /self_share /= !ffunE; apply: moved => // ei.
  by apply: few jh; apply/negbTE; apply: contraNN ei => open_i; rewrite e0.
- move=> [[i j] k]; rewrite !ffunE /=; case: ifP => // /and3P[iU ki jh]; rewrite /key_share /= !ffunE; apply: moved => // mk.
  by apply: few jh; apply/negbTE; apply: contraNN mk => open_i; rewrite m0 //; case/orP: ki => /eqP->; rewrite /pair_open open_i ?orbT.
- by move=> i; rewrite !ffunE; case: ifP => // /own.
- by move=> i; rewrite !ffunE; case: ifP => // iC; rewrite /= ?ffunE eC ?addr0 ?subrr ?psi0 ?addr0.
- by move=> k; rewrite !ffunE; case: ifP => // kC; rewrite /= m0 ?addr0 //; case/orP: kC => kC; rewrite /pair_open kC ?orbT.
- move=> [i k]; rewrite !ffunE /=; case: ifP => // /andP[iC ki]; rewrite m0 ?addr0 ?subrr ?psi0 ?addr0 //.
  by case/orP: ki => /eqP->; rewrite /pair_open iC ?orbT.
Qed.

(* What masks that are open give away. *)
Lemma answers_tell : tells view opened.
Proof.
move=> x x' r r' [/ffunP up /ffunP self /ffunP key /ffunP own /ffunP ownr /ffunP ownm _].
(* masks of users outside U2 are in no upload *)
pose cut (s : secret) : SecAggPrivacy.secret G N := ([ffun i => if i \in U2 then s.1.1.1 i else 0],
  [ffun e : 'I_N * 'I_N => if (e.1 \in U2) && (e.2 \in U2) then s.1.1.2 e else 0]).
have cutE y s i : i \in U2 -> upload nb U2 y (cut s) i = upload nb U2 y s.1.1 i.
  by move=> iU; rewrite /upload /masked ffunE iU; congr (_ + _ - _); apply: eq_bigr => j /andP[jU _]; rewrite ffunE /= iU jU.
have selfE i : i \in U2 -> self_open i -> r.1.1.1 i = r'.1.1.1 i.
  move=> iU /orP[iC|enough]; first by move: (ownr i); rewrite !ffunE iC => -[].
  apply/enc_inj/(shamir_recovery (c := r.1.2 i) (c' := r'.1.2 i) enough) => j jh.
  by move: (self (i, j)); rewrite !ffunE /= iU jh.
have keyE i e : i \in U2 -> pair_open i -> (e.1 == i) || (e.2 == i) -> r.1.1.2 e = r'.1.1.2 e.
  move=> iU /orP[iC ei|enough ei].
    by move: (ownm e); rewrite !ffunE; case/orP: ei => /eqP->; rewrite iC ?orbT.
  apply/enc_inj/(shamir_recovery (c := r.2 (i, e)) (c' := r'.2 (i, e)) enough) => j jh.
  by move: (key (i, j, e)); rewrite !ffunE /= iU ei jh.
apply: (proj2 (opened_exactly G nb_sym U2 C self_open pair_open)) (cut r) (cut r') _; congr (_, _, _, _); apply/ffunP.
- by move=> i; rewrite !ffunE; case: ifP => // iU; rewrite !cutE //; move: (up i); rewrite !ffunE iU.
- by move=> i; rewrite !ffunE; case: ifP => // open_i; case: ifP => // iU; exact: selfE.
- move=> [i j]; rewrite !ffunE /=; case: ifP => // /orP[]open_ij; case: ifP => // /andP[iU jU].
    by apply: (keyE i); rewrite //= eqxx.
  by apply: (keyE j); rewrite //= eqxx orbT.
- by move=> i; move: (own i); rewrite !ffunE.
Qed.

(* And that they give nothing else. *)
Lemma answers_hide : (p <= N)%N -> hides view opened.
Proof.
move=> pN; apply: hides_by_moving => x x' /(opened_moves nb_sym) [e [m [e0U e0 m0 _ same]]].
apply: (shares_follow pN) m0 _ _ => [i _|i iC|r i iU|i iC]; [exact: e0 | by rewrite e0 // /self_open iC | |].
  by have [/ffunP/(_ i)] := same r; rewrite !ffunE iU.
by have [_ _ _ /ffunP/(_ i)] := same (0, 0); rewrite !ffunE iC.
Qed.

(* On any graph, for any users that survive, answer and collude, exactly this is learned: the inputs of users whose two secrets
   reach t shares, and the sums over the components of the others in which every self mask reaches t. *)
(* Carries SAG-10, SAG-24, SAG-27, UNI-COMPONENTS, UNI-FAILED. *)
Theorem answers_exactly : (p <= N)%N -> learns_exactly view opened.
Proof. by move=> pN; split; [exact: answers_hide | exact: answers_tell]. Qed.

(* With fewer than t colluding holders of each honest user, nothing but the component sums is learned, for any users that answer. *)
(* Carries SAG-10, SAG-24, SHM-12, BAS-DELAY, UNI-COMPONENTS, UNI-FAILED. *)
Theorem threshold_hides : (p <= N)%N -> (forall i, i \in U2 -> i \notin C -> (#|holders i C| <= p)%N) ->
  hides view (SecAggPrivacy.allowed nb U3 C).
Proof.
move=> pN few; apply: hides_by_moving => x x'; rewrite -!(opened_sums nb C sub) => /(opened_moves nb_sym) [e [m [e0U e0 m0 m0U same]]].
have out i : i \in U2 -> i \notin C -> (p < #|holders i (set0 :|: C)|)%N = false.
  by move=> iU iC; rewrite set0U ltnNge few.
have pair_bare i : i \in U2 -> pair_open i -> bare U3 C i.
  move=> iU; rewrite /bare orbC; case/orP => [-> //|]; case: (boolP (i \in C)) => //= iC; case: ifP => // _.
  by rewrite out.
apply: (@shares_follow x x' e m pN) => [i iU|i iC|[i j] /= b|r i iU|i iC].
- case/orP => [iC|]; first by rewrite e0 ?iC ?orbT.
  case: (boolP (i \in C)) => iC; first by rewrite e0 ?iC ?orbT.
  by case: ifP => iU3; [rewrite e0 ?iU3 | rewrite out].
- by rewrite e0 ?iC ?orbT.
- case: (boolP ((i \notin U2) || (j \notin U2))) => [/(m0U (i, j)) //|]; rewrite negb_or !negbK => /andP[iU jU].
  by apply: m0 => /=; case/orP: b => /pair_bare ->; rewrite ?orbT.
- by have [/ffunP/(_ i)] := same r; rewrite !ffunE iU.
- by have [_ _ _ /ffunP/(_ i)] := same (0, 0); rewrite !ffunE iC.
Qed.

(* The honest users that are exposed: t of their holders collude. *)
Definition exposed := [set i in U2 :\: C | (p < #|holders i C|)%N].

(* With t holders of each user among those who answer or collude, exactly this is learned: the inputs of the exposed users, and
   the sums over the components of the other honest survivors. *)
(* Carries SAG-02, SAG-10, SAG-24, SAG-27, SAG-29, UNI-COMPONENTS. *)
Theorem components_exactly : (p <= N)%N -> (forall i, i \in U2 -> (p < #|holders i (U5 :|: C)|)%N) ->
  learns_exactly view (SecAggPrivacy.allowed nb U3 (C :|: exposed)).
Proof.
move=> pN enough; have [hid tel] := answers_exactly pN.
have same x : opened x = SecAggPrivacy.allowed nb U3 (C :|: exposed) x.
  rewrite -(opened_sums nb _ sub); apply: opened_ext => i => [iU|iU|]; rewrite /self_open /pair_open /bare !inE; last first.
    by case/andP=> /andP[_ iU] many; rewrite iU; case: ifP => _; rewrite ?set0U ?enough ?many ?orbT.
  - by case: (i \in C) => //=; case: (i \in U3); rewrite ?orbT ?orbF ?set0U ?enough ?iU.
  - by case: (i \in C) => //=; case: (i \in U3); rewrite ?orbT ?orbF ?set0U ?enough ?iU.
by split=> [x x'|x x' r r' e]; rewrite -!same; [exact: hid | exact: tel e].
Qed.

(* So without exposed users the component sums are all. *)
(* Carries SAG-10, SAG-24, SAG-27, SAG-29, UNI-COMPONENTS. *)
Theorem threshold_exactly : (p <= N)%N -> (forall i, i \in U2 -> i \notin C -> (#|holders i C| <= p)%N) ->
  (forall i, i \in U2 -> (p < #|holders i (U5 :|: C)|)%N) -> learns_exactly view (SecAggPrivacy.allowed nb U3 C).
Proof.
move=> pN few enough; have := components_exactly pN enough; rewrite (_ : exposed = set0) ?setU0 //.
by apply/setP => i; rewrite !inE ltnNge; case: (boolP (i \in C)) => //= iC; case: (boolP (i \in U2)) => //= iU; rewrite few.
Qed.

(* An honest user with t colluding holders is exposed, whether it drops out or not, and whoever answers. *)
(* Carries SAG-02, UNI-COMPONENTS. *)
Theorem threshold_broken x x' r r' i : i \in U2 -> (p < #|holders i C|)%N -> view x r = view x' r' -> x i = x' i.
Proof.
move=> iU many /answers_tell [/ffunP /(_ i) own _]; move: own; rewrite !ffunE iU /self_open /pair_open.
have more S : (p < #|holders i (S :|: C)|)%N.
  by apply: leq_trans many (subset_leq_card _); apply/subsetP => j; rewrite !inE => /andP[-> ->]; rewrite orbT.
by rewrite !more !orbT.
Qed.

(* With fewer than t shares of the self mask of a survivor the sum over the survivors does not come out, without colluders. *)
(* Carries SAG-27, UNI-FAILED, BAS-SECAGG. *)
Lemma too_few i (g : G) : (p <= N)%N -> i \in U3 -> (#|holders i (U5 :|: C)| <= p)%N -> g != 0 -> i \notin C ->
  exists x x' r r', view x r = view x' r' /\ \sum_(j in U3) x j != \sum_(j in U3) x' j.
Proof.
move=> pN iU few g0 iC; have iU2 := subsetP sub i iU.
have [x xE] : exists x : input, forall j, x j = 0 by exists [ffun=> 0] => j; rewrite ffunE.
have [x' x'E] : exists x' : input, forall j, x' j = if j == i then g else 0.
  by exists [ffun j => if j == i then g else 0] => j; rewrite ffunE.
have hidden : self_open i = false by rewrite /self_open (negPf iC) iU ltnNge few.
pose r : secret := ((0, 0), 0, 0).
have [|r' e] := @hides_view _ _ _ _ view opened x x' (answers_hide pN) _ r; last first.
  exists x, x', r, r'; split=> //; rewrite big1 // (bigD1 i) //= x'E eqxx big1 ?addr0 1?eq_sym // => j /andP[_ /negPf ji].
  by rewrite x'E ji.
congr (_, _); apply/ffunP => j; rewrite !ffunE; case: ifP => // open_j.
  rewrite xE x'E; case: eqP => // ji; by move: open_j; rewrite ji (negPf iC) hidden andbF.
apply: eq_bigr => k kj; rewrite xE x'E; case: eqP => // ki; move: open_j kj; rewrite ki => /andP[_ /forall_inP all_open] /all_open.
by rewrite hidden.
Qed.
End Round.
End Shamir.
