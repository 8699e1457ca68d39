(* The thresholds of SecAgg on the complete graph, for all numbers of users (spec/secagg.md, section 2).  Claim BAS-SECAGG. *)
From mathcomp Require Import all_ssreflect all_algebra.
From secagg Require Import Counting Masks Code SecAggPrivacy SecAggGraph SecAggShamir.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section Thresholds.
Variables (F : finFieldType) (N L : nat) (a : 'I_N -> F) (G : finZmodType) (enc : G -> 'M[F]_(1, L)) (g : G).
Hypotheses (a_inj : injective a) (a_neq0 : forall j, a j != 0) (enc_inj : injective enc) (g_neq0 : g != 0).

(* With the threshold t = p + 1: against any T users nothing is learned but the sum, for any users that share, survive and answer; and
   when at most D users are missing among those who answer, the sum comes out. *)
Definition private p T := forall U2 U3 U5 C : {set 'I_N}, U3 \subset U2 -> (#|C| <= T)%N ->
  hides (SecAggShamir.view (p := p) a enc (@complete N) U2 U3 U5 C) (only_sum U3 C).
Definition withstands p D := forall U2 U3 U5 : {set 'I_N}, U3 \subset U2 -> (N - D <= #|U5|)%N ->
  tells (SecAggShamir.view (p := p) a enc (@complete N) U2 U3 U5 set0) (fun x => \sum_(i in U3) x i).

Lemma all_hold i (A : {set 'I_N}) : holders (@complete N) i A = A.
Proof. by apply/setP => j; rewrite inE /complete eq_sym orbN andbT. Qed.

Lemma set_of k : (k <= N)%N -> exists A : {set 'I_N}, #|A| = k.
Proof.
move=> kN; exists [set i : 'I_N | i < k]%N.
by rewrite -sum1dep_card -(big_ord_widen _ (fun=> 1%N) kN) sum1_card card_ord.
Qed.

(* A round that names its survivors U3 and fails for want of answers, with k users that answered or collude: all of the sum is
   learned when k >= t, and else nothing. *)
(* Carries SAG-30, UNI-FAILED. *)
Theorem failed_complete p (U2 U3 U5 C : {set 'I_N}) : U3 \subset U2 -> (p <= N)%N -> (#|C| <= p)%N ->
  learns_exactly (SecAggShamir.view (p := p) a enc (@complete N) U2 U3 U5 C)
    (fun x => (own C x, if (p < #|U5 :|: C|)%N then \sum_(i in H U3 C) x i else 0)).
Proof.
move=> sub pN leC; case: (boolP (p < #|U5 :|: C|)%N) => k.
  have [hid tel] : learns_exactly (SecAggShamir.view (p := p) a enc (@complete N) U2 U3 U5 C) (allowed (@complete N) U3 C).
    by apply: threshold_exactly => // [|i _ _|i _]; rewrite ?all_hold //; exact: complete_sym.
  have sums x x' := connected_sum x x' (@complete_connected N U3 C).
  by split=> [x x' /sums /hid|x x' r r' /tel /sums].
have [hid tel] := answers_exactly a_inj a_neq0 (@complete_sym N) enc_inj U2 U3 U5 C pN.
have low (b : bool) : (p < #|(if b then U5 else set0) :|: C|)%N = false.
  by case: b; rewrite ?(negPf k) // set0U ltnNge leC.
have selfE i : self_open p (@complete N) U3 U5 C i = (i \in C) by rewrite /self_open all_hold low orbF.
have pairE i : pair_open p (@complete N) U3 U5 C i = (i \in C).
  by rewrite /pair_open all_hold (_ : (if _ then _ else _) = if i \notin U3 then U5 else set0) ?low ?orbF //; case: (i \in U3).
have same (y : {ffun 'I_N -> G}) : opened_allowed (@complete N) U2 C (self_open p (@complete N) U3 U5 C) (pair_open p (@complete N) U3 U5 C) y =
    (own C y, [ffun=> 0]).
  congr (_, _); apply/ffunP => i; rewrite !ffunE; first by rewrite selfE pairE; case: (i \in C); rewrite ?andbF.
  case: ifP => // /andP[iV /forall_inP /(_ i (part_refl _ iV))]; rewrite selfE => iC.
  by move: iV; rewrite inE pairE iC andbF.
split=> [x x' [o]|x x' r r' /tel]; [by apply: hid; rewrite !same o | by rewrite !same => -[->]].
Qed.

(* A threshold t is private against T users exactly when T < t, where somebody is honest. *)
(* Carries SAG-02, BAS-SECAGG. *)
Theorem private_iff p T : (p < N)%N -> (T < N)%N -> private p T <-> (T <= p)%N.
Proof.
move=> pN TN; split=> [priv|Tp U2 U3 U5 C sub leC x x' same v]; last first.
  apply: threshold_hides => //; [exact: complete_sym | exact: ltnW | by move=> i _ _; rewrite all_hold (leq_trans leC) |].
  exact/(connected_sum x x' (@complete_connected N U3 C)).
rewrite leqNgt; apply/negP => pT; have [C cC] := set_of (ltnW TN).
have /existsP[i iC] : [exists i, i \notin C].
  rewrite -negb_forall; apply/negP => /forallP all; move: TN; rewrite -cC (_ : C = setT) ?cardsT ?card_ord ?ltnn //.
  by apply/setP => j; rewrite inE all.
have [x xE] : exists x : {ffun 'I_N -> G}, forall k, x k = 0 by exists [ffun=> 0] => k; rewrite ffunE.
have [x' x'E] : exists x' : {ffun 'I_N -> G}, forall k, x' k = if k == i then g else 0.
  by exists [ffun k => if k == i then g else 0] => k; rewrite ffunE.
have other k : k != i -> x k = x' k by move=> /negPf ki; rewrite xE x'E ki.
have same : only_sum (~: [set i]) C x = only_sum (~: [set i]) C x'.
  congr (_, _); last by apply: eq_bigr => k; rewrite !inE => /andP[_ /other].
  have ownE (y : {ffun 'I_N -> G}) k : own C y k = if k \in C then y k else 0 by rewrite ffunE.
  by apply/ffunP => k; rewrite !ownE; case: ifP => // kC; apply: other; apply: contraNneq iC => <-.
pose r : SecAggShamir.secret F N p L G := ((0, 0), 0, 0).
have [r' view_eq] := hides_view (priv setT _ set0 C (subsetT _) (eq_leq cC)) same r.
have many : (p < #|holders (@complete N) i C|)%N by rewrite all_hold cC.
have := threshold_broken a_inj (@complete_sym N) enc_inj (in_setT i) many view_eq.
by rewrite xE x'E eqxx => /eqP; rewrite (negPf g_neq0).
Qed.

(* It withstands D missing answers exactly when t <= N - D. *)
(* Carries SAG-02, SAG-27, BAS-SECAGG. *)
Theorem withstands_iff p D : (p < N)%N -> withstands p D <-> (p < N - D)%N.
Proof.
move=> pN; split=> [wit|le U2 U3 U5 sub leU x x' r r' same]; last first.
  have [_ tel] : learns_exactly (SecAggShamir.view (p := p) a enc (@complete N) U2 U3 U5 set0)
      (SecAggPrivacy.allowed (@complete N) U3 set0).
    apply: threshold_exactly => //; [exact: complete_sym | exact: ltnW | |] => i _.
      by move=> _; rewrite all_hold cards0.
    by rewrite all_hold setU0 (leq_trans le).
  have /(connected_sum x x' (@complete_connected N U3 set0)) [_] := tel _ _ _ _ same.
  by rewrite /H setD0.
rewrite ltnNge; apply/negP => Np; have [U5 cU] := set_of (leq_subr D N).
have [] := @too_few F N p L a a_inj a_neq0 G enc (@complete N) (@complete_sym N) setT setT U5 set0 (subxx _) (Ordinal pN) g (ltnW pN) => //; rewrite ?inE //.
  by rewrite all_hold setU0 cU.
move=> x [x' [r [r' [same /eqP]]]]; case; apply: (wit setT setT U5) same; first exact: subsetT.
by rewrite cU.
Qed.

(* So there is a threshold for T colluders and D missing users exactly when N > D + T. *)
(* Carries SAG-01, SAG-02, BAS-SECAGG. *)
Theorem bas_secagg T D : (T < N)%N -> (exists p, [/\ (p < N)%N, private p T & withstands p D]) <-> (D + T < N)%N.
Proof.
move=> TN; split=> [[p [pN /(private_iff pN TN) Tp /(withstands_iff D pN) pD]]|le].
  by rewrite -ltn_subRL (leq_ltn_trans Tp).
by exists T; split; [exact: TN | exact: (proj2 (private_iff TN TN) (leqnn T)) | apply: (proj2 (withstands_iff D TN)); rewrite ltn_subRL].
Qed.
End Thresholds.
