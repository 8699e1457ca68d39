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

(* For at most T colluders, and every mask, there is a noise with which the shares of the colluders are zero; chosen by a
   function that is additive where it has to be. *)
Lemma quiet_noise : (#|C| <= T)%N -> (T <= N)%N ->
  exists psi : 'M[F]_(K, L) -> 'M[F]_(T, L),
    [/\ forall Z j, j \in C -> share a (col_mx Z (psi Z)) j = 0,
        psi 0 = 0
      & forall (P : {set 'I_N}) (Z : 'I_N -> 'M[F]_(K, L)),
          \sum_(i in P) w i *: Z i = 0 -> \sum_(i in P) w i *: psi (Z i) = 0].
Proof.
move=> leC leT; have [C' CC' cardC'] : exists2 C' : {set 'I_N}, C \subset C' & #|C'| = T.
  pose k := (T - #|C|)%N; pose s := take k (enum (~: C)).
  have szs : size s = k by rewrite size_takel // -cardE cardsCs setCK card_ord leq_sub2r.
  have us : uniq s by rewrite take_uniq ?enum_uniq.
  have dis i : i \in s -> i \notin C by move/mem_take; rewrite mem_enum inE.
  exists (C :|: [set i in s]); first exact: subsetUl.
  rewrite cardsU (_ : C :&: _ = set0) ?cards0 ?subn0; last first.
    by apply/setP => i; rewrite !inE; apply/negP => /andP[iC /dis]; rewrite iC.
  by rewrite cardsE (card_uniqP us) szs subnKC.
pose c (i : 'I_T) : 'I_N := enum_val (cast_ord (esym cardC') i).
have injc : injective c by move=> i j /enum_val_inj/cast_ord_inj.
have exn (Z : 'M[F]_(K, L)) : exists n : 'M[F]_(T, L), held a c Z n == 0.
  have /eqP := t_privacy a_inj a_neq0 (K := K) (L := L) Z 0 injc.
  by rewrite eqn_leq => /andP[_ /card_gt0P [n]]; rewrite inE; exists n.
pose psi Z := xchoose (exn Z).
have psiP Z j : j \in C' -> share a (col_mx Z (psi Z)) j = 0.
  move=> jC; have /eqP/ffunP := xchooseP (exn Z).
  move=> /(_ (cast_ord cardC' (enum_rank_in jC j))); rewrite !ffunE /c cast_ordK.
  by rewrite enum_rankK_in.
have leC' : (T <= #|C'|)%N by rewrite cardC'.
exists psi; split.
- by move=> Z j /(subsetP CC'); exact: psiP.
- by apply: (noise_inj a_inj a_neq0 (K := K) (Z := 0) leC') => j jC; rewrite psiP // col_mx0 share0.
move=> P Z Z0; apply: (noise_inj a_inj a_neq0 (K := K) (Z := 0) leC') => j jC.
rewrite col_mx0 share0 -Z0 -sum_col_mx share_sum big1 // => i _.
by rewrite -scale_col_mx shareZ psiP // scaler0.
Qed.

(* Where there is such a function, nothing else is learned. *)
Lemma quiet_hides :
  (exists psi : 'M[F]_(K, L) -> 'M[F]_(T, L),
    [/\ forall z j, j \in C -> share a (col_mx (lay z) (psi (lay z))) j = 0,
        psi 0 = 0
      & forall (P : {set 'I_N}) (Z : 'I_N -> 'M[F]_(K, L)),
          \sum_(i in P) w i *: Z i = 0 -> \sum_(i in P) w i *: psi (Z i) = 0]) -> hides view allowed.
Proof.
move=> [psi [quiet psi0 psiS]].
apply: hides_by_moving => x x' [/ffunP ownx sumx].
pose dx i := x i - x' i.
have dxC i : i \in C -> dx i = 0 by move=> iC; move: (ownx i); rewrite !ffunE iC /dx => ->; rewrite subrr.
have dxU : \sum_(i in U1) w i *: dx i = 0.
  rewrite (big_setID C) /= big1 => [|i /setIP[_ /dxC ->]]; last by rewrite scaler0.
  by rewrite add0r /dx; under eq_bigr do rewrite scalerBr; rewrite sumrB sumx subrr.
exists (fun r : secret => [ffun i => ((r i).1 + dx i, (r i).2 + psi (lay (dx i)))]).
  move=> r r' /ffunP same; apply/ffunP => i; move: (same i); rewrite !ffunE => -[/addIr e1 /addIr e2].
  by move: e1 e2; case: (r i) (r' i) => [? ?] [? ?] /= -> ->.
move=> r; set r' := finfun _.
have codeD i : code r' i = code r i + col_mx (lay (dx i)) (psi (lay (dx i))).
  by rewrite /code ffunE raddfD add_col_mx.
congr (_, _, _, _); apply/ffunP.
- move=> i; rewrite !ffunE /upload; case: ifP => // _; rewrite ?ffunE /= /dx.
  by rewrite addrCA [x' i + _]addrC subrK addrC.
- by move=> [i j]; rewrite !ffunE /=; case: ifP => // jC; rewrite codeD shareD quiet // addr0.
- move=> j; rewrite !ffunE; case: ifP => // _; rewrite /answer.
  under eq_bigr do rewrite codeD shareD scalerDr; rewrite big_split /= -[RHS]addr0; congr (_ + _).
  under eq_bigr do rewrite -shareZ scale_col_mx; rewrite -share_sum sum_col_mx psiS.
    by under eq_bigr do rewrite -linearZ; rewrite -linear_sum dxU linear0 col_mx0 share0.
  by under eq_bigr do rewrite -linearZ; rewrite -linear_sum dxU linear0.
- move=> i; rewrite !ffunE; case: ifP => // iC; rewrite ?ffunE dxC // raddf0 psi0 !addr0.
  by move: (ownx i); rewrite !ffunE iC => ->; case: (r i).
Qed.

(* The server with at most T users learns nothing else, whatever W, U1 and Q are. *)
(* Carries MDS-10, LSA-02, LSA-08, BAS-TPRIV, UNI-FAILED. *)
Theorem lightsecagg_hides : (#|C| <= T)%N -> (T <= N)%N -> hides view allowed.
Proof.
move=> leC leT; apply: quiet_hides; have [psi [quiet psi0 psiS]] := quiet_noise leC leT.
by exists psi; split=> // z; exact: quiet.
Qed.

(* Second half: and that much it does learn, when the uploads of U1 and U answers came. *)
(* Carries LSA-13, BSA-27, BAS-TPRIV. *)
Theorem lightsecagg_exactly : (#|C| <= T)%N -> (T <= N)%N -> U1 \subset W -> (K + T <= #|Q|)%N ->
  learns_exactly view allowed.
Proof.
move=> leC leT sub leQ; split; first exact: lightsecagg_hides.
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
