(* LightSecAgg and BASecAgg (spec/lightsecagg.md, spec/basecagg.md): one-shot recovery, and exactly what the server
   learns.  The weights are 1 in LightSecAgg. *)
From mathcomp Require Import all_ssreflect all_algebra.
From secagg Require Import Counting Code.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section LightSecAgg.
(* K = U - T sub-masks of L elements, and T rows of noise; any layout of d elements that loses nothing (MDS-03 is one). *)
Variables (F : finFieldType) (N K T L d : nat) (a : 'I_N -> F) (lay : {linear 'rV[F]_d -> 'M[F]_(K, L)}) (w : 'I_N -> F).
Hypotheses (a_inj : injective a) (a_neq0 : forall j, a j != 0) (lay_inj : injective lay).

Definition input := {ffun 'I_N -> 'rV[F]_d}.
Definition secret := {ffun 'I_N -> 'rV[F]_d * 'M[F]_(T, L)}.      (* of each user: its mask, its noise *)
Definition code (r : secret) (i : 'I_N) : 'M[F]_(K + T, L) := col_mx (lay (r i).1) (r i).2.
Definition upload (x : input) (r : secret) (i : 'I_N) : 'rV[F]_d := x i + (r i).1.
Definition answer (r : secret) (U1 : {set 'I_N}) (j : 'I_N) : 'rV[F]_L := \sum_(i in U1) w i *: share a (code r i) j.

(* Two runs with the same answers of U users, and the same uploads, have the same sum of inputs: it is a function of
   the uploads and of any U answers. *)
(* Carries LSA-02, LSA-08, LSA-13, BAS-ONESHOT. *)
Theorem one_shot (x x' : input) (r r' : secret) (U1 Q : {set 'I_N}) :
  (K + T <= #|Q|)%N -> (forall j, j \in Q -> answer r U1 j = answer r' U1 j) ->
  (forall i, i \in U1 -> upload x r i = upload x' r' i) -> \sum_(i in U1) w i *: x i = \sum_(i in U1) w i *: x' i.
Proof.
move=> leQ ans up.
have same : \sum_(i in U1) w i *: code r i = \sum_(i in U1) w i *: code r' i.
  apply: (recovery a_inj leQ) => j jQ; rewrite !share_sum.
  by under eq_bigr do rewrite shareZ; under [RHS]eq_bigr do rewrite shareZ; exact: ans.
have codes (s : secret) : \sum_(i in U1) w i *: code s i =
    col_mx (lay (\sum_(i in U1) w i *: (s i).1)) (\sum_(i in U1) w i *: (s i).2).
  rewrite linear_sum -sum_col_mx; apply: eq_bigr => i _.
  by rewrite /code scale_col_mx linearZ.
move: same; rewrite !codes => /eq_col_mx [/lay_inj sumz _].
have sums (y : input) (s : secret) :
    \sum_(i in U1) w i *: y i = \sum_(i in U1) w i *: upload y s i - \sum_(i in U1) w i *: (s i).1.
  by rewrite /upload; under [X in _ = X - _]eq_bigr do rewrite scalerDr; rewrite big_split addrK.
by rewrite (sums x r) (sums x' r') sumz; congr (_ - _); apply: eq_bigr => i /up ->.
Qed.

(* What the server and the coalition C see: uploads of the users in W, the shares that were sent to C, the answers of the
   users in Q for the surviving set U1, and all that the users of C know of their own. *)
Variables (W U1 Q C : {set 'I_N}).
Definition view (x : input) (r : secret) :=
  ([ffun i => if i \in W then upload x r i else 0],
   [ffun ij : 'I_N * 'I_N => if ij.2 \in C then share a (code r ij.1) ij.2 else 0],
   [ffun j => if j \in Q then answer r U1 j else 0],
   [ffun i => if i \in C then (x i, r i) else (0, (0, 0))]).

(* What they may learn: the inputs of C, and the weighted sum over the honest survivors. *)
Definition allowed (x : input) := ([ffun i => if i \in C then x i else 0], \sum_(i in U1 :\: C) w i *: x i).

(* For at most T colluders, and every mask, there is a noise with which the shares of the colluders are zero. *)
Lemma quiet_noise : (#|C| <= T)%N -> forall Z : 'M[F]_(K, L), exists n : 'M[F]_(T, L), forall j, j \in C -> share a (col_mx Z n) j = 0.
Proof.
move=> leC Z; have free : row_free (powers a C K T) by rewrite -row_leq_rank powers_rank // leq_min leC leqnn.
exists (pinvmx (powers a C K T) *m - (powers a C 0 K *m Z)); apply/silent => //.
by rewrite mulmxA mulmxVp // mul1mx addrN.
Qed.

(* Where each mask has such a noise, and the sum of what is added to the masks has one for the answers too, randomness is moved
   without loss, so that inputs become others. *)
Lemma moving (x x' : input) :
  (forall z, exists n : 'M[F]_(T, L), forall j, j \in C -> share a (col_mx (lay z) n) j = 0) ->
  (forall i, i \in C -> x i = x' i) ->
  (exists n : 'M[F]_(T, L), forall j, j \in Q :|: C -> share a (col_mx (lay (\sum_(i in U1 :\: C) w i *: (x i - x' i))) n) j = 0) ->
  exists2 g : secret -> secret, injective g & forall r, view x' (g r) = view x r.
Proof.
move=> quiet own [s silent]; pose dx i := x i - x' i; pose H := U1 :\: C.
have dxC i : i \in C -> dx i = 0 by move=> /own e; rewrite /dx e subrr.
have HU (G : zmodType) (f : 'I_N -> G) : (forall i, i \in C -> f i = 0) -> \sum_(i in U1) f i = \sum_(i in H) f i.
  by move=> f0; rewrite (big_setID C) /= big1 ?add0r // => i /setIP[_ /f0].
(* To the noise of each user that is nobody's: what is quiet; to that of one with a weight what is missing. *)
have [nu nuC nuQ] : exists2 nu : 'I_N -> 'M[F]_(T, L),
    forall i, (i \in C -> nu i = 0) /\ forall j, j \in C -> share a (col_mx (lay (dx i)) (nu i)) j = 0
    & forall j, j \in Q -> \sum_(i in U1) w i *: share a (col_mx (lay (dx i)) (nu i)) j = 0.
  have ex i : exists n : 'M[F]_(T, L), [forall j in C, share a (col_mx (lay (dx i)) n) j == 0].
    by have [n qn] := quiet (dx i); exists n; apply/forall_inP => j /qn ->.
  pose psi i := if i \in C then 0 else xchoose (ex i).
  have psiC i j : j \in C -> share a (col_mx (lay (dx i)) (psi i)) j = 0.
    rewrite /psi; case: ifP => [/dxC ->|_] jC; first by rewrite linear0 col_mx0 share0.
    exact/eqP/(forall_inP (xchooseP (ex i))).
  have sums (nu : 'I_N -> 'M[F]_(T, L)) j : (forall i, i \in C -> nu i = 0) ->
      \sum_(i in U1) w i *: share a (col_mx (lay (dx i)) (nu i)) j =
      share a (col_mx (lay (\sum_(i in H) w i *: dx i)) (\sum_(i in H) w i *: nu i)) j.
    move=> nu0; rewrite HU => [|i iC]; last by rewrite dxC // nu0 // linear0 col_mx0 share0 scaler0.
    rewrite linear_sum -sum_col_mx share_sum; apply: eq_bigr => i _; by rewrite linearZ /= -scale_col_mx shareZ.
  case: (pickP [pred i | (i \in H) && (w i != 0)]) => [i0 /= /andP[iH wi]|none].
    have iC : i0 \notin C by move: iH; rewrite inE => /andP[].
    pose nu i := if i == i0 then (w i0)^-1 *: (s - \sum_(i in H | i != i0) w i *: psi i) else psi i.
    have nu0 i : i \in C -> nu i = 0.
      by move=> iC'; rewrite /nu /psi iC' (_ : (i == i0) = false) //; apply: contraNF iC => /eqP <-.
    have total : \sum_(i in H) w i *: nu i = s.
      rewrite (bigD1 i0) //= {1}/nu eqxx scalerA divff // scale1r.
      by rewrite [X in _ + X](eq_bigr (fun i => w i *: psi i)) ?subrK // => i /andP[_ /negPf]; rewrite /nu => ->.
    exists nu => [i|j jQ]; last by rewrite sums // total silent // inE jQ.
    split=> [|j jC]; first exact: nu0.
    case: (eqVneq i i0) => [->|ne]; last by rewrite {1}/nu (negPf ne) psiC.
    apply: (@scalerI _ _ (w i0)); rewrite // scaler0 -[RHS](silent j) ?inE ?jC ?orbT // -total -sums //.
    rewrite [RHS]HU => [|k kC]; last by rewrite dxC // nu0 // linear0 col_mx0 share0 scaler0.
    rewrite (bigD1 i0) //= [X in _ + X]big1 ?addr0 // => k /andP[_ /negPf ki].
    by rewrite {1}/nu ki psiC // scaler0.
  exists psi => [i|j _]; first by split=> [iC|j]; [rewrite /psi iC | exact: psiC].
  rewrite HU => [|i iC]; last by rewrite dxC // /psi iC linear0 col_mx0 share0 scaler0.
  by rewrite big1 // => i iH; move/negbT: (none i); rewrite /= iH negbK => /eqP ->; rewrite scale0r.
exists (fun r : secret => [ffun i => ((r i).1 + dx i, (r i).2 + nu i)]).
  move=> r r' /ffunP same; apply/ffunP => i; move: (same i); rewrite !ffunE => -[/addIr e1 /addIr e2].
  by move: e1 e2; case: (r i) (r' i) => [? ?] [? ?] /= -> ->.
move=> r; set r' := finfun _.
have codeD i : code r' i = code r i + col_mx (lay (dx i)) (nu i) by rewrite /code ffunE raddfD add_col_mx.
congr (_, _, _, _); apply/ffunP.
- move=> i; rewrite !ffunE /upload; case: ifP => // _; rewrite ?ffunE /= /dx.
  by rewrite addrCA [x' i + _]addrC subrK addrC.
- by move=> [i j]; rewrite !ffunE /=; case: ifP => // jC; rewrite codeD shareD (proj2 (nuC i)) // addr0.
- move=> j; rewrite !ffunE; case: ifP => // jQ; rewrite /answer.
  by under eq_bigr do rewrite codeD shareD scalerDr; rewrite big_split /= nuQ // addr0.
- move=> i; rewrite !ffunE; case: ifP => // iC; rewrite ?ffunE dxC // (proj1 (nuC i)) // !addr0 own //.
  by case: (r i).
Qed.

(* The server with at most T users learns nothing else, whatever W, U1 and Q are. *)
(* Carries MDS-10, LSA-02, LSA-08, BAS-TPRIV, UNI-FAILED. *)
Theorem lightsecagg_hides : (#|C| <= T)%N -> hides view allowed.
Proof.
move=> leC; apply: hides_by_moving => x x' [/ffunP own sums]; apply: moving => [z|i iC|].
- exact: quiet_noise.
- by move: (own i); rewrite !ffunE iC.
exists 0 => j _; under eq_bigr do rewrite scalerBr; by rewrite sumrB sums subrr linear0 col_mx0 share0.
Qed.

(* Second half: and that much it does learn, when the uploads of U1 and U answers came. *)
(* Carries LSA-13, BSA-27, BAS-TPRIV. *)
Theorem lightsecagg_exactly : (#|C| <= T)%N -> U1 \subset W -> (K + T <= #|Q|)%N ->
  learns_exactly view allowed.
Proof.
move=> leC sub leQ; split; first exact: lightsecagg_hides.
move=> x x' r r' [/ffunP up _ /ffunP ans /ffunP own].
have ownx i : i \in C -> x i = x' i by move=> iC; move: (own i); rewrite !ffunE iC => -[].
have sums : \sum_(i in U1) w i *: x i = \sum_(i in U1) w i *: x' i.
  apply: (one_shot (r := r) (r' := r') leQ) => [j jQ|i /(subsetP sub) iW].
    by move: (ans j); rewrite !ffunE jQ.
  by move: (up i); rewrite !ffunE iW.
congr (_, _); first by apply/ffunP => i; rewrite !ffunE; case: ifP => // /ownx.
have part (y : input) :
    \sum_(i in U1 :\: C) w i *: y i = \sum_(i in U1) w i *: y i - \sum_(i in U1 :&: C) w i *: y i.
  by rewrite [X in _ = X - _](big_setID C) /= addrAC subrr add0r.
by rewrite !part sums; congr (_ - _); apply: eq_bigr => i /setIP[_ /ownx ->].
Qed.
End LightSecAgg.
