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

(* With fewer than t colluding holders of each honest user, nothing but the component sums is learned, for any users that answer. *)
(* Carries SAG-10, SAG-24, SHM-12, BAS-DELAY, UNI-COMPONENTS, UNI-FAILED. *)
Theorem threshold_hides : (p <= N)%N -> (forall i, i \in U2 -> i \notin C -> (#|holders i C| <= p)%N) ->
  hides view (SecAggPrivacy.allowed nb U3 C).
Proof.
move=> pN few; apply: hides_by_moving => x x' /(secagg_moves nb_sym sub) [e [m [e0 m0 same]]].
pose g (r : secret) : secret := ((r.1.1.1 + e, r.1.1.2 + m),
  [ffun i => r.1.2 i + psi (holders i C) (enc (r.1.1.1 i + e i) - enc (r.1.1.1 i))],
  [ffun ie => r.2 ie + psi (holders ie.1 C) (enc (r.1.1.2 ie.2 + m ie.2) - enc (r.1.1.2 ie.2))]).
have cE s i : (g s).1.2 i = s.1.2 i + psi (holders i C) (enc (s.1.1.1 i + e i) - enc (s.1.1.1 i)) by exact: ffunE.
have kE s i : (g s).2 i = s.2 i + psi (holders i.1 C) (enc (s.1.1.2 i.2 + m i.2) - enc (s.1.1.2 i.2)) by exact: ffunE.
have injg : injective g.
  move=> r1 r2 same12; have [b12 m12] : r1.1.1.1 = r2.1.1.1 /\ r1.1.1.2 = r2.1.1.2.
    split; first by apply: (@addIr _ e); exact: (congr1 (fun s : secret => s.1.1.1) same12).
    by apply: (@addIr _ m); exact: (congr1 (fun s : secret => s.1.1.2) same12).
  have inj (c : 'M[F]_(p, L)) : injective (+%R^~ c) := addIr c.
  have cb12 : r1.1.2 = r2.1.2.
    apply/ffunP => i; apply: inj (psi (holders i C) (enc (r2.1.1.1 i + e i) - enc (r2.1.1.1 i))) _ _ _.
    by rewrite -(cE r2) -same12 cE b12.
  have ck12 : r1.2 = r2.2.
    apply/ffunP => i; apply: inj (psi (holders i.1 C) (enc (r2.1.1.2 i.2 + m i.2) - enc (r2.1.1.2 i.2))) _ _ _.
    by rewrite -(kE r2) -same12 kE m12.
  by move: b12 m12 cb12 ck12; case: r1 r2 {same12} => [[[? ?] ?] ?] [[[? ?] ?] ?] /= -> -> -> ->.
exists g => // r.
have [/ffunP up _ _ /ffunP own] := same r.1.1; have both i : i \in C -> bare U3 C i by rewrite /bare orbC => ->.
congr (_, _, _, _, _, _, _); apply/ffunP.
- by move=> i; move: (up i); rewrite !ffunE.
- move=> [i j]; rewrite !ffunE /=; case: ifP => // /andP[iU jh]; rewrite /self_share /= !ffunE; apply: moved => // ei.
  move: (contra_neqN (e0 i) ei); rewrite negb_or => /andP[/negPf iU3 iC].
  by move: jh; rewrite iU3 set0U; split=> //; exact: few.
- move=> [[i j] k]; rewrite !ffunE /=; case: ifP => // /and3P[iU ki jh]; rewrite /key_share /= !ffunE; apply: moved => // mk.
  have nb12 : ~~ (bare U3 C k.1 || bare U3 C k.2) by apply: contra_neqN mk; exact: m0.
  have : ~~ bare U3 C i by case/orP: ki nb12 => /eqP->; rewrite negb_or => /andP[].
  rewrite negb_or negbK => /andP[iU3 iC]; move: jh; rewrite iU3 set0U; split=> //; exact: few.
- by move=> i; move: (own i); rewrite !ffunE.
- move=> i; rewrite !ffunE; case: ifP => // iC; by rewrite /= ?ffunE e0 ?iC ?orbT // addr0 subrr psi0 addr0.
- move=> k; rewrite !ffunE; case: ifP => // kC; rewrite /= m0 ?addr0 //.
  by case/orP: kC => /both ->; rewrite ?orbT.
- move=> [i k]; rewrite !ffunE /=; case: ifP => // /andP[/both bi ki]; rewrite m0 ?addr0 ?subrr ?psi0 ?addr0 //.
  by case/orP: ki => /eqP->; rewrite bi ?orbT.
Qed.

(* And with t holders of each user among those who answer or collude, that much is learned. *)
(* Carries SAG-10, SAG-24, SAG-27, SAG-29, UNI-COMPONENTS. *)
Theorem threshold_exactly : (p <= N)%N -> (forall i, i \in U2 -> i \notin C -> (#|holders i C| <= p)%N) ->
  (forall i, i \in U2 -> (p < #|holders i (U5 :|: C)|)%N) -> learns_exactly view (SecAggPrivacy.allowed nb U3 C).
Proof.
move=> pN few enough; split; first exact: threshold_hides.
move=> x x' r r' [/ffunP up /ffunP self /ffunP key /ffunP own /ffunP ownr /ffunP ownm _].
(* masks with users outside U2 are in no upload *)
pose cut (s : secret) : SecAggPrivacy.secret G N :=
  (s.1.1.1, [ffun e : 'I_N * 'I_N => if (e.1 \in U2) && (e.2 \in U2) then s.1.1.2 e else 0]).
have cutE y s i : i \in U2 -> upload nb U2 y (cut s) i = upload nb U2 y s.1.1 i.
  move=> iU; rewrite /upload /masked; congr (_ + _ + _ - _); apply: eq_bigr => j /andP[jU _]; by rewrite ffunE /= iU jU.
have selfE i : i \in U3 -> r.1.1.1 i = r'.1.1.1 i.
  move=> iU3; have iU := subsetP sub i iU3; apply/enc_inj/(shamir_recovery (c := r.1.2 i) (c' := r'.1.2 i) (enough i iU)) => j jh.
  by move: (self (i, j)); rewrite !ffunE /= iU iU3 jh.
have keyE i e : i \in U2 -> i \notin U3 -> (e.1 == i) || (e.2 == i) -> r.1.1.2 e = r'.1.1.2 e.
  move=> iU iU3 ei; apply/enc_inj/(shamir_recovery (c := r.2 (i, e)) (c' := r'.2 (i, e)) (enough i iU)) => j jh.
  by move: (key (i, j, e)); rewrite !ffunE /= iU ei (negPf iU3) jh.
apply: (proj2 (secagg_exactly G nb_sym C sub)) (cut r) (cut r') _; congr (_, _, _, _); apply/ffunP.
- by move=> i; rewrite !ffunE; case: ifP => // iU; rewrite !cutE //; move: (up i); rewrite !ffunE iU.
- move=> i; rewrite !ffunE; case: ifP => //; case: (boolP (i \in U3)) => [/selfE|_ /= iC] //=.
  by move: (ownr i); rewrite !ffunE iC => -[].
- move=> [i j]; rewrite !ffunE /=; case: ifP => // bij; case: ifP => // /andP[iU jU].
  move: bij; rewrite /bare orbACA orbC => /orP[ijC|].
    by move: (ownm (i, j)); rewrite !ffunE /= ijC.
  by case/orP => [iU3|jU3]; [apply: (keyE i) | apply: (keyE j)]; rewrite //= eqxx ?orbT.
- by move=> i; move: (own i); rewrite !ffunE.
Qed.

(* An honest user with t colluding holders is exposed, whether it drops out or not. *)
(* Carries SAG-02, UNI-COMPONENTS. *)
Theorem threshold_broken x x' r r' i : i \in U2 -> (p < #|holders i C|)%N -> view x r = view x' r' -> x i = x' i.
Proof.
move=> iU many [/ffunP up /ffunP self /ffunP key _ _ _ _].
have inC S j : j \in holders i C -> j \in holders i (S :|: C) by rewrite !inE => /andP[-> ->]; rewrite orbT.
have selfE : r.1.1.1 i = r'.1.1.1 i.
  apply/enc_inj/(shamir_recovery (c := r.1.2 i) (c' := r'.1.2 i) many) => j /inC jh; by move: (self (i, j)); rewrite !ffunE /= iU jh.
have keyE e : (e.1 == i) || (e.2 == i) -> r.1.1.2 e = r'.1.1.2 e.
  move=> ei; apply/enc_inj/(shamir_recovery (c := r.2 (i, e)) (c' := r'.2 (i, e)) many) => j /inC jh.
  by move: (key (i, j, e)); rewrite !ffunE /= iU ei jh.
move: (up i); rewrite !ffunE iU /upload /masked selfE.
rewrite (eq_bigr (fun j => r'.1.1.2 (i, j))) => [|j _]; last by rewrite keyE //= eqxx.
rewrite [X in _ - X = _](eq_bigr (fun j => r'.1.1.2 (j, i))) => [|j _]; last by rewrite keyE //= eqxx orbT.
by move=> /addIr/addIr/addIr.
Qed.

(* With fewer than t shares of the self mask of a survivor the sum over the survivors does not come out, without colluders. *)
(* Carries SAG-27, UNI-FAILED, BAS-SECAGG. *)
Lemma too_few i (g : G) : (p <= N)%N -> i \in U3 -> (#|holders i (U5 :|: C)| <= p)%N -> g != 0 -> i \notin C ->
  exists x x' r r', view x r = view x' r' /\ \sum_(j in U3) x j != \sum_(j in U3) x' j.
Proof.
move=> pN iU few g0 iC; pose d (h : G) : {ffun 'I_N -> G} := [ffun j => if j == i then h else 0].
have dE h j : d h j = if j == i then h else 0 by rewrite ffunE.
pose r : secret := ((0, 0), 0, 0).
pose r' : secret := ((d (- g), 0), [ffun j => if j == i then psi (holders i (U5 :|: C)) (enc (- g) - enc 0) else 0], 0).
exists 0, (d g), r, r'; split; last first.
  rewrite big1 => [|j _]; last by rewrite ffunE.
  rewrite (bigD1 i) //= dE eqxx big1 ?addr0 1?eq_sym // => j /andP[_ /negPf ji]; by rewrite dE ji.
congr (_, _, _, _, _, _, _); apply/ffunP => j; rewrite ![LHS]ffunE ![RHS]ffunE //.
- by case: ifP => // _; rewrite /upload /masked /= !dE; congr (_ + _ - _); case: eqP; rewrite !ffunE ?addr0 // subrr.
- case: ifP => // /andP[jU jh]; rewrite /self_share /= dE ![in RHS]ffunE; case: eqP => [e|_]; last by rewrite !ffunE.
  move: jh; rewrite e iU => jh; rewrite -[- g]add0r -[X in shamir _ X]add0r add0r.
  by rewrite !ffunE -[X in shamir (enc X)]add0r -[psi _ _]add0r moved // add0r.
- by case: ifP => // jC; rewrite dE (_ : (j == i) = false) ?ffunE //; apply: contraNF iC => /eqP <-.
- case: ifP => // jC; rewrite /= dE !ffunE (_ : (j == i) = false) //; by apply: contraNF iC => /eqP <-.
Qed.
End Round.
End Shamir.
