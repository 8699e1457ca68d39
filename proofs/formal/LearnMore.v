(* LightSecAgg and BASecAgg: what happens outside the thresholds (spec/lightsecagg.md, section 1).  Claims BAS-TPRIV, UNI-FAILED. *)
From mathcomp Require Import all_ssreflect all_algebra.
From secagg Require Import Counting Code LightSecAgg Instances.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

(* Before a surviving set is announced nothing is learned of honest inputs. *)
(* Carries LSA-17, UNI-FAILED. *)
Theorem unannounced (F : finFieldType) N K T L d (a : 'I_N -> F) (lay : {linear 'rV[F]_d -> 'M[F]_(K, L)}) w (W Q C : {set 'I_N}) :
  injective a -> (forall j, a j != 0) -> (#|C| <= T)%N -> (T <= N)%N ->
  hides (view (T := T) a lay w W set0 Q C) (fun x => [ffun i => if i \in C then x i else 0]).
Proof.
move=> inj neq leC leT x x' same v; apply: lightsecagg_hides => //; rewrite /allowed set0D !big_set0.
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
