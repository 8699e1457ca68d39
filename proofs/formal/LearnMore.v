(* LightSecAgg and BASecAgg: what happens outside the thresholds (spec/lightsecagg.md, section 1).  Claims BAS-TPRIV, UNI-FAILED. *)
From mathcomp Require Import all_ssreflect all_algebra.
From secagg Require Import Counting Code LightSecAgg Instances.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

(* Before a surviving set is announced nothing is learned of honest inputs. *)
(* Carries LSA-02, MDS-10, UNI-FAILED. *)
Theorem unannounced (F : finFieldType) N K T L d (a : 'I_N -> F) (lay : {linear 'rV[F]_d -> 'M[F]_(K, L)}) w (W Q C : {set 'I_N}) :
  injective a -> (forall j, a j != 0) -> (#|C| <= T)%N ->
  hides (view (T := T) a lay w W set0 Q C) (fun x => [ffun i => if i \in C then x i else 0]).
Proof.
move=> inj neq leC x x' same v; apply: lightsecagg_hides => //; rewrite /allowed set0D !big_set0.
by congr (_, _).
Qed.

Section More.
Variables (F : finFieldType) (N K' T L d : nat) (a : 'I_N -> F).
Local Notation K := K'.+1.
Variables (lay : {linear 'rV[F]_d -> 'M[F]_(K, L)}) (w : 'I_N -> F).
Hypotheses (a_inj : injective a) (a_neq0 : forall j, a j != 0).
Variables (W U1 Q C : {set 'I_N}).

(* A matrix with nothing but its last row, under noise: T + 1 shares that are zero leave nothing of it. *)
Lemma last_row (Z : 'M[F]_(K, L)) (n : 'M[F]_(T, L)) :
  (forall (k : 'I_K) l, (k < K')%N -> Z k l = 0) -> (T < #|C|)%N ->
  (forall j, j \in C -> share a (col_mx Z n) j = 0) -> Z = 0.
Proof.
move=> up many zero; pose z : 'M[F]_(1, L) := row ord_max Z.
have z0 : col_mx z n = 0.
  apply: (shares_zero a_inj (U := 1 + T) (A := C)) => // j jC; apply: (@scalerI _ _ (a j ^+ K')); first by rewrite expf_neq0.
  rewrite scaler0 -[RHS](zero j jC) !share_col scalerDr scalerA -exprD addn1; congr (_ + _).
  rewrite /share big_ord1 expr0 scale1r big_ord_recr /= big1 ?add0r => [|k _]; last first.
    by apply/rowP => l; rewrite !mxE up ?mulr0 //=.
  by congr (_ *: _); apply/rowP => l; rewrite !mxE.
have /(@eq_col_mx _ 1 T L) [zz _] : col_mx z n = col_mx 0 0 by rewrite z0 col_mx0.
apply/matrixP => k l; rewrite [RHS]mxE; case: (ltngtP k K') => [kK|kK|kK]; first exact: up.
  by move: (ltn_ord k); rewrite ltnS leqNgt kK.
by move/rowP/(_ l): zz; rewrite !mxE (_ : ord_max = k) //; apply: val_inj.
Qed.

(* T + 1 users learn more than the sum, when it is over two honest users and the last sub-mask has an element of the vector. *)
(* Carries MDS-01, BAS-TPRIV. *)
Theorem more_than_T (z : 'rV[F]_d) i k :
  lay z != 0 -> (forall (r : 'I_K) l, (r < K')%N -> lay z r l = 0) -> (T < #|C|)%N ->
  i \in U1 :\: C -> k \in U1 :\: C -> i != k -> w i != 0 -> w k != 0 -> i \in W ->
  ~ hides (view (T := T) a lay w W U1 Q C) (allowed w U1 C).
Proof.
move=> z0 up many iU kU ik wi wk iW hid.
have [x xE] : exists x : input F N d, forall j, x j = 0 by exists [ffun=> 0] => j; rewrite ffunE.
have [x' x'E] : exists x' : input F N d, forall j, x' j = (if j == i then (w i)^-1 *: z else 0) - (if j == k then (w k)^-1 *: z else 0).
  by exists [ffun j => (if j == i then (w i)^-1 *: z else 0) - (if j == k then (w k)^-1 *: z else 0)] => j; rewrite ffunE.
have [iC kC] : i \notin C /\ k \notin C by move: iU kU; rewrite !inE => /andP[-> _] /andP[-> _].
have same : allowed w U1 C x = allowed w U1 C x'.
  congr (_, _).
    have E (y : input F N d) j : [ffun i => if i \in C then y i else 0] j = if j \in C then y j else 0 by rewrite ffunE.
    apply/ffunP => j; rewrite !E; case: ifP => // jC.
    have ji : (j == i) = false by apply: contraNF iC => /eqP <-.
    have jk : (j == k) = false by apply: contraNF kC => /eqP <-.
    by rewrite xE x'E ji jk subrr.
  rewrite big1 => [|j _]; last by rewrite xE scaler0.
  under eq_bigr do rewrite x'E scalerBr; rewrite sumrB (bigD1 i) //= eqxx (bigD1 k kU) /= eqxx !scalerA !divff // scale1r.
  by rewrite !big1 ?addr0 ?subrr // => j /andP[_ /negPf->]; rewrite scaler0.
pose r : secret F N T L d := [ffun=> (0, 0)].
have [r' [/ffunP/(_ i) upl /ffunP sh _ _]] := hides_view hid same r.
have zi : (r' i).1 = - ((w i)^-1 *: z).
  move: upl; rewrite !ffunE iW /upload x'E xE eqxx (negPf ik) subr0 ffunE /= add0r addrC => /eqP; by rewrite addr_eq0 => /eqP.
suff zero : lay (r' i).1 = 0.
  move: zero; rewrite zi linearN linearZ /= => /eqP; rewrite oppr_eq0 scaler_eq0 invr_eq0 (negPf wi) /=; exact/negP.
apply: (@last_row _ (r' i).2) many _ => [p l pK|j jC].
  by rewrite zi linearN linearZ /= !mxE up ?mulr0 ?oppr0.
by move: (sh (i, j)); rewrite !ffunE /= jC /code ffunE /= linear0 col_mx0 share0.
Qed.
End More.

(* With the points j + 1 and the layout of the text: where the last of the U - T = K sub-masks has an element. *)
(* Carries MDS-01, MDS-02, MDS-03, BAS-TPRIV. *)
Theorem lightsecagg_more q N K' T L d (w : 'I_N -> 'F_q) (W U1 Q C : {set 'I_N}) i k :
  prime q -> (N < q)%N -> (K' * L < d <= K'.+1 * L)%N -> (T < #|C|)%N ->
  i \in U1 :\: C -> k \in U1 :\: C -> i != k -> w i != 0 -> w k != 0 -> i \in W ->
  ~ hides (view (T := T) (@point q N) (layout_is_linear _ d K'.+1 L) w W U1 Q C) (allowed w U1 C).
Proof.
move=> pq Nq /andP[low up] many iU kU ik wi wk iW.
have L0 : (0 < L)%N by move: (leq_trans low up); rewrite mulSn -[X in (X < _)%N]add0n ltn_add2r.
pose z : 'rV['F_q]_d := delta_mx 0 (Ordinal low).
apply: (@more_than_T _ N K' T L d _ _ w _ _ W U1 Q C z i k) => //; [exact: point_inj | exact: point_neq0 | |].
  apply/eqP => /matrixP /(_ ord_max (Ordinal L0)) /eqP; rewrite !mxE /= addn0.
  by rewrite insubT mxE !eqxx oner_eq0.
move=> r l rK; rewrite mxE; case: insubP => // u _ uE; rewrite mxE /= (_ : (u == _) = false) //.
apply/negP => /eqP e; move: uE; rewrite e /= => uE; suff : (K' * L < K' * L)%N by rewrite ltnn.
rewrite {1}uE; apply: (@leq_trans (r.+1 * L)%N); last by rewrite leq_mul2r rK orbT.
by rewrite mulSn addnC ltn_add2r.
Qed.

(* Two sub-masks of one element, the second one padding, under one row of noise: where all points have one square, as 1 and 4
   modulo 5, there is a noise with which all shares are zero. *)
Lemma square_quiet (F : finFieldType) N (a : 'I_N -> F) (D : {set 'I_N}) b (z : 'rV[F]_1) :
  b != 0 -> (forall j, j \in D -> a j ^+ 2 = b) ->
  exists n : 'M[F]_(1, 1), forall j, j \in D -> share a (col_mx (layout 2 1 z) n) j = 0.
Proof.
move=> b0 square; exists (- (b^-1 *: row 0 (layout 2 1 z))) => j /square jb.
rewrite share_col jb /share big_ord_recl !big_ord1 /= !expr0 expr1 !scale1r; apply/rowP => l.
have none : insub 1%N = None :> option 'I_1 by rewrite insubN.
rewrite (ord1 l) !mxE mulrN mulrA divff // mul1r.
by rewrite -[(lift _ _ * 1 + _)%N]/1%N none mulr0 addr0 subrr.
Qed.

(* So where a sub-mask is all padding, T + 1 users may learn no more, and T + 1 or more with such points. *)
(* Carries MDS-03, BAS-TPRIV. *)
Theorem padding_may_hide (F : finFieldType) N (a : 'I_N -> F) (w : 'I_N -> F) (W U1 Q C : {set 'I_N}) b :
  b != 0 -> (forall j, j \in C -> a j ^+ 2 = b) ->
  hides (view (T := 1) a (layout_is_linear F 1 2 1) w W U1 Q C) (allowed w U1 C).
Proof.
move=> b0 square; apply: hides_by_moving => x x' [/ffunP own sums]; apply: moving => [z|i iC|].
- exact: square_quiet b0 square.
- by move: (own i); rewrite !ffunE iC.
exists 0 => j _; under eq_bigr do rewrite scalerBr; by rewrite sumrB sums subrr linear0 col_mx0 share0.
Qed.
