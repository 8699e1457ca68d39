(* LightSecAgg and BASecAgg: which parts of a sum come out when fewer than U users answer (spec/lightsecagg.md, section 1;
   spec/basecagg.md, section 1).  Claim UNI-FAILED. *)
From mathcomp Require Import all_ssreflect all_algebra zify.
From secagg Require Import Counting Code LightSecAgg Instances LearnMore.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

(* Equations have a solution when their right sides agree wherever their left sides cancel. *)
Lemma solvable (F : fieldType) m n p (B : 'M[F]_(m, n)) (Y : 'M[F]_(m, p)) : kermx B *m Y = 0 -> exists X, B *m X = Y.
Proof.
move=> zero; exists (pinvmx B *m Y); pose c := col_ebase B; pose r := \rank B.
have -> : B *m (pinvmx B *m Y) = c *m (pid_mx r *m (invmx c *m Y)).
  rewrite /pinvmx -[X in X *m _](mulmx_ebase B) !mulmxA mulmxK ?row_ebase_unit //.
  by rewrite -!mulmxA; congr (_ *m _); rewrite mulmxA pid_mx_id ?rank_leq_col.
have -> : pid_mx r *m (invmx c *m Y) = invmx c *m Y; last by rewrite mulKVmx ?col_ebase_unit.
by apply/eqP; rewrite -subr_eq0 -{2}[invmx c *m Y]mul1mx -mulmxBl -oppr_eq0 -mulNmx opprB mulmxA; apply/eqP.
Qed.

(* The combinations of rows that are free of B have the rank that B lacks. *)
Lemma rank_free (F : fieldType) m K T (P : 'M[F]_(m, K)) (B : 'M[F]_(m, T)) :
  \rank (kermx B *m P) = (\rank (row_mx P B) - \rank B)%N.
Proof.
have sub : (kermx (row_mx P B) <= kermx B)%MS.
  by apply/sub_kermxP; have := mulmx_ker (row_mx P B); rewrite mul_mx_row -row_mx0 => /eq_row_mx [].
have := mxrank_mul_ker (kermx B) (row_mx P B).
rewrite mul_mx_row mulmx_ker rank_row_mx0 (capmx_idPr sub) !mxrank_ker.
by have := rank_leq_row (row_mx P B); move: (\rank (_ *m _)) (\rank B) (\rank (row_mx P B)) => x y z; lia.
Qed.

Section Parts.
Variables (F : finFieldType) (N K T L d : nat) (a : 'I_N -> F) (lay : {linear 'rV[F]_d -> 'M[F]_(K, L)}) (w : 'I_N -> F).
Hypotheses (a_inj : injective a) (a_neq0 : forall j, a j != 0) (lay_inj : injective lay).

(* The combinations of the shares of the users in D that are free of noise, as combinations of the K = U - T sub-masks. *)
Definition parts (D : {set 'I_N}) : 'M[F]_(#|D|, K) := kermx (powers a D K T) *m powers a D 0 K.

(* There are as many as users above T, until all sub-masks are determined. *)
(* Carries LSA-14, BSA-30, UNI-FAILED. *)
Theorem parts_rank D : \rank (parts D) = minn K (#|D| - T).
Proof. by rewrite rank_free -powers_row !powers_rank //; move: #|D| => n; lia. Qed.

Lemma parts_zero D (Z : 'M[F]_(K, L)) : parts D *m Z = 0 <-> exists n : 'M[F]_(T, L), forall j, j \in D -> share a (col_mx Z n) j = 0.
Proof.
split=> [zero|[n /(silent a_neq0) zero]].
  have [X XE] : exists X, powers a D K T *m X = powers a D 0 K *m Z by apply: solvable; rewrite mulmxA.
  by exists (- X); apply/silent => //; rewrite mulmxN XE subrr.
move: zero; rewrite /parts; move: (powers a D 0 K) (powers a D K T) => P B zero.
by rewrite -mulmxA -[P *m Z](addrK (B *m n)) zero add0r mulmxN mulmxA mulmx_ker mul0mx oppr0.
Qed.

Variables (W U1 Q C : {set 'I_N}).
Local Notation view := (view (T := T) a lay w W U1 Q C).

(* What is shown when the users in Q answered and those in C collude: the inputs of C, and these combinations of the weighted sum
   over the honest survivors, in the layout.  The shares of a colluder count, whether it answers or not. *)
Definition shown (x : input F N d) :=
  ([ffun i => if i \in C then x i else 0], parts (Q :|: C) *m lay (\sum_(i in U1 :\: C) w i *: x i)).

(* With at most T colluders no more is learned, whoever uploads and answers; and that much is, when the uploads of U1 came. *)
(* Carries LSA-14, BSA-30, UNI-FAILED. *)
Theorem parts_exactly : (#|C| <= T)%N -> U1 \subset W -> learns_exactly view shown.
Proof.
move=> leC sub; split=> [|x x' r r' [/ffunP up /ffunP sh /ffunP ans /ffunP own]].
  apply: hides_by_moving => x x' [/ffunP own same]; apply: moving => // [z|i iC|]; first exact: quiet_noise.
    by move: (own i); rewrite !ffunE iC.
  apply/parts_zero; under eq_bigr do rewrite scalerBr; by rewrite sumrB linearB mulmxBr same subrr.
have ownx i : i \in C -> x i = x' i by move=> iC; move: (own i); rewrite !ffunE iC => -[].
congr (_, _); first by apply/ffunP => i; rewrite !ffunE; case: ifP => // /ownx.
apply/eqP; rewrite -subr_eq0 -mulmxBr -linearB -sumrB; apply/eqP/parts_zero.
exists (- \sum_(i in U1) w i *: ((r i).2 - (r' i).2)) => j jD.
have same : answer a lay w r U1 j = answer a lay w r' U1 j.
  move: jD; rewrite inE => /orP[jQ|jC]; first by move: (ans j); rewrite !ffunE jQ.
  by apply: eq_bigr => i _; move: (sh (i, j)); rewrite !ffunE /= jC => ->.
have all : \sum_(i in U1 :\: C) (w i *: x i - w i *: x' i) = - \sum_(i in U1) w i *: ((r i).1 - (r' i).1).
  rewrite -sumrN [RHS](big_setID C) /= [X in _ = X + _]big1 ?add0r => [|i /setIP[iU iC]].
    apply: eq_bigr => i /setDP[/(subsetP sub) iW _]; move: (up i); rewrite !ffunE iW /upload => /(canRL (addrK _)) ->.
    by rewrite -scalerBr -scalerN opprB -addrA [x' i + _]addrC addrK.
  by move: (up i); rewrite !ffunE (subsetP sub) // /upload ownx // => /addrI ->; rewrite subrr scaler0 oppr0.
rewrite all linearN -opp_col_mx shareN; apply/eqP; rewrite oppr_eq0; apply/eqP.
rewrite linear_sum -sum_col_mx share_sum -[RHS](subrr (answer a lay w r' U1 j)) -{1}same /answer -sumrB; apply: eq_bigr => i _.
by rewrite linearZ /= -scale_col_mx shareZ -scalerBr -shareN -shareD /code opp_col_mx add_col_mx linearB.
Qed.

(* With T users or fewer these are none; with U = K + T or more they tell the sum, whether the colluders answer or not. *)
(* Carries LSA-14, BSA-30, UNI-FAILED. *)
Corollary parts_none : (#|Q :|: C| <= T)%N -> U1 \subset W -> learns_exactly view (fun x => [ffun i => if i \in C then x i else 0]).
Proof.
move=> few sub; have leC : (#|C| <= T)%N := leq_trans (subset_leq_card (subsetUr Q C)) few.
have zero : parts (Q :|: C) = 0 by apply/eqP; rewrite -mxrank_eq0 parts_rank (eqP (few : _ - _ == 0)%N) minn0.
have [hid tel] := parts_exactly leC sub; split=> [x x' own|x x' r r' /tel []//].
by apply: hid; rewrite /shown own zero !mul0mx.
Qed.

(* Carries LSA-14, BSA-30, UNI-FAILED. *)
Corollary parts_all : (K + T <= #|Q :|: C|)%N -> (#|C| <= T)%N -> U1 \subset W -> learns_exactly view (allowed w U1 C).
Proof.
move=> many leC sub; have [hid tel] := parts_exactly leC sub; split=> [|x x' r r' /tel [own same]].
  exact: lightsecagg_hides.
have rank : \rank (parts (Q :|: C)) = K by rewrite parts_rank; move: #|_| many => n; lia.
have full : row_full (parts (Q :|: C)) by exact/eqP.
move: (parts _) full same => P full same; have := congr1 (mulmx (pinvmx P)) same.
by rewrite !mulmxA (mulVpmx full) !mul1mx => /lay_inj sums; congr (_, _).
Qed.
End Parts.

(* With the points j + 1 and the layout of the text: of each column of U - T elements of the sum, that is of every U - T parts. *)
(* Carries MDS-01, MDS-02, MDS-03, MDS-04, LSA-01, LSA-14, BSA-30, UNI-FAILED. *)
Theorem failed_round q N U T d (w : 'I_N -> 'F_q) (W U1 Q C : {set 'I_N}) (L := ((d + (U - T) - 1) %/ (U - T))%N) :
  prime q -> (N < q)%N -> (#|C| <= T)%N -> U1 \subset W ->
  learns_exactly (view (T := T) (@point q N) (layout_is_linear _ d (U - T) L) w W U1 Q C)
    (shown T (@point q N) (layout_is_linear _ d (U - T) L) w U1 Q C)
  /\ \rank (parts (U - T) T (@point q N) (Q :|: C)) = minn (U - T) (#|Q :|: C| - T).
Proof.
move=> pq Nq leC sub; split; last by rewrite parts_rank //; [exact: point_inj | exact: point_neq0].
by apply: parts_exactly => //; [exact: point_inj | exact: point_neq0].
Qed.

(* But of a column with padding there may be fewer: here nothing, though any number of users answered.  T = 1, there are two
   sub-masks of one element, the second one is padding, and all their points have one square, as 1 and 4 modulo 5. *)
(* Carries MDS-03, UNI-FAILED. *)
Theorem padding_shows_less (F : finFieldType) N (a : 'I_N -> F) (w : 'I_N -> F) (W U1 Q C : {set 'I_N}) b :
  b != 0 -> (forall j, j \in Q :|: C -> a j ^+ 2 = b) ->
  hides (view (T := 1) a (layout_is_linear F 1 2 1) w W U1 Q C) (fun x => [ffun i => if i \in C then x i else 0]).
Proof.
move=> b0 square; apply: hides_by_moving => x x' /ffunP own; apply: moving => [z|i iC|].
- by apply: (square_quiet _ b0) => j jC; rewrite square // inE jC orbT.
- by move: (own i); rewrite !ffunE iC.
- exact: square_quiet b0 square.
Qed.

(* And without uploads nothing is shown: the inputs of U1 have to be there. *)
Theorem uploads_show (F : finFieldType) N K T L d (a : 'I_N -> F) (lay : {linear 'rV[F]_d -> 'M[F]_(K, L)}) w (U1 Q C : {set 'I_N}) :
  hides (view (T := T) a lay w set0 U1 Q C) (fun x => [ffun i => if i \in C then x i else 0]).
Proof.
apply: hides_by_moving => x x' /ffunP own; exists id => // r.
congr (_, _, _, _); apply/ffunP => i; rewrite !ffunE ?inE //.
by move: (own i); rewrite !ffunE; case: ifP => // _ ->.
Qed.
