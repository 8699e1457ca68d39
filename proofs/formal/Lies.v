(* A server that names different survivors to different users (spec/secagg.md, section 10, the semi-honest profile on the
   complete graph, honest keys, all shares relayed).  Claim UNI-LIES, in full: the bound, and that it is attained. *)
From mathcomp Require Import all_ssreflect zify.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(* On a circle of h users let s, spread evenly, survive; each other one is named dropped by the D users after it. *)
Section Circle.
Variables (h s D : nat).
Hypotheses (s_gt0 : 0 < s) (s_le_h : s <= h).

Definition surv u := u * s %/ h < u.+1 * s %/ h.
Definition after (j i : 'I_h) := [exists e : 'I_D, j == (i + e.+1) %% h :> nat].

Lemma h_gt0 : 0 < h. Proof. exact: leq_trans s_gt0 s_le_h. Qed.

Lemma step u : u.+1 * s %/ h = u * s %/ h + surv u.
Proof.
rewrite /surv mulSn addnC divnD ?h_gt0 // -addnA; set k := _ + nat_of_bool _.
suff : k <= 1 by case: k => [|[|k']] // _; rewrite ?addn1 ?ltnSn ?addn0 ?ltnn ?addn0 ?addn1.
rewrite /k; have := ltn_pmod (u * s) h_gt0; move: s_le_h; rewrite leq_eqVlt => /orP[/eqP e|lt].
  by rewrite {2 4}e divnn modnn h_gt0 addn0 [h <= _]leqNgt => ->.
by rewrite (divn_small lt) add0n leq_b1.
Qed.

Lemma window u n : (u + n) * s %/ h = u * s %/ h + \sum_(e < n) surv (u + e).
Proof. by elim: n => [|n IH]; rewrite ?big_ord0 ?addn0 // addnS step IH big_ord_recr addnA. Qed.

Lemma window_ge u n : n * s %/ h <= \sum_(e < n) surv (u + e).
Proof. by rewrite -(leq_add2l (u * s %/ h)) -window mulnDl divnD ?h_gt0 // leq_addr. Qed.

Lemma surv_mod u : surv (u %% h) = surv u.
Proof.
rewrite {2}/surv {2 3}(divn_eq u h) -addnS !mulnDl -mulnA [h * s]mulnC mulnA !divnMDl ?h_gt0 //.
by rewrite ltn_add2l.
Qed.

Lemma card_surv : #|[set i : 'I_h | surv i]| = s.
Proof.
have := window 0 h; rewrite mul0n div0n add0n add0n [h * s]mulnC mulnK ?h_gt0 // => ->.
by rewrite -sum1dep_card big_mkcond /=; apply: eq_bigr => i _; rewrite add0n; case: (surv i).
Qed.

Lemma after_irr i : D < h -> ~~ after i i.
Proof.
move=> Dh; apply/existsP => -[e /eqP]; rewrite -[LHS](modn_small (ltn_ord i)) -[X in X %% _]addn0 => /eqP.
by rewrite eqn_modDl mod0n modn_small // (leq_ltn_trans _ Dh).
Qed.

Lemma after_ge i : D < h -> D <= #|[set j | after j i]|.
Proof.
move=> Dh; pose to (e : 'I_D) : 'I_h := Ordinal (ltn_pmod (i + e.+1) h_gt0).
have inj : injective to.
  move=> e e' /(congr1 val) /= /eqP; rewrite eqn_modDl !modn_small ?(leq_ltn_trans _ Dh) // => /eqP [] /val_inj //.
rewrite -[X in X <= _](card_ord D) -cardsT -(card_imset _ inj); apply/subset_leq_card/subsetP => _ /imsetP[e _ ->].
by rewrite inE; apply/existsP; exists e.
Qed.

Lemma after_load j : D < h -> #|[set i : 'I_h | ~~ surv i && after j i]| <= D - D * s %/ h.
Proof.
move=> Dh; pose back (e : 'I_D) : 'I_h := Ordinal (ltn_pmod (j + (h - e.+1)) h_gt0).
have sub : [set i : 'I_h | ~~ surv i && after j i] \subset [set back e | e in [set e : 'I_D | ~~ surv (j + (h - e.+1))]].
  apply/subsetP => i; rewrite inE => /andP[ni /existsP[e /eqP je]].
  have eh : e.+1 <= h by rewrite (leq_trans (ltn_ord e)) // ltnW.
  have bi : (j + (h - e.+1)) %% h = i by rewrite je modnDml -addnA subnKC // modnDr modn_small.
  apply/imsetP; exists e; last by apply: val_inj; rewrite /= bi.
  by rewrite inE -surv_mod bi.
apply: (leq_trans (subset_leq_card sub)); apply: leq_trans (leq_imset_card _ _) _.
have total : #|[set e : 'I_D | ~~ surv (j + (h - e.+1))]| + \sum_(e < D) surv (j + (h - e.+1)) = D.
  rewrite -sum1dep_card big_mkcond -big_split /= -[RHS]card_ord -sum1_card; apply: eq_bigr => e _; by case: surv.
have flip : \sum_(e < D) surv (j + (h - e.+1)) = \sum_(e < D) surv (j + (h - D) + e).
  by rewrite (reindex_inj rev_ord_inj); apply: eq_bigr => e _; congr (nat_of_bool (surv _)); case: e => /= e; lia.
by move: total; rewrite flip; have := window_ge (j + (h - D)) D; lia.
Qed.
End Circle.

Section Lies.
(* N users of whom c collude, the threshold t; the H = N - c honest users answer, and D = t - c of them make t with the
   colluders.  dropped j i: user j was given i as dropped. *)
Variables (N c t : nat).
Local Notation H := (N - c).
Local Notation D := (t - c).
Local Notation m := (2 * t - (N + c)).
Hypotheses (c_lt_t : c < t) (t_le_N : t <= N).

(* An answer names t survivors at least (SAG-22); its sender is one of them (SAG-21). *)
Definition answerable (dropped : rel 'I_H) := forall j, #|[set i | dropped j i]| <= N - t /\ ~~ dropped j j.

(* The self mask of i goes, its pairwise masks go. *)
Definition self_out (dropped : rel 'I_H) i := D <= #|[set j | ~~ dropped j i]|.
Definition pair_out (dropped : rel 'I_H) i := D <= #|[set j | dropped j i]|.

(* The sum over S comes out: the self masks of S are removed, and the pairwise masks of all other honest users. *)
Definition sum_out dropped (S : {set 'I_H}) := forall i, if i \in S then self_out dropped i else pair_out dropped i.

(* No user loses both masks, when 2t > N + c. *)
(* Carries SAG-20, UNI-LIES. *)
Theorem no_single_input dropped i : N + c < 2 * t -> ~ (self_out dropped i /\ pair_out dropped i).
Proof.
move=> big []; rewrite /self_out /pair_out (_ : [set j | ~~ dropped j i] = ~: [set j | dropped j i]); last first.
  by apply/setP => j; rewrite !inE.
have := cardsC [set j | dropped j i]; rewrite card_ord; lia.
Qed.

(* The bound: when no lie is one that users refuse, a sum that comes out is over 2mH / (H + m) honest users at least. *)
(* Carries SAG-21, SAG-22, UNI-LIES. *)
Theorem lies_bound dropped S : N + c <= 2 * t -> answerable dropped -> sum_out dropped S -> 2 * m * H <= #|S| * (H + m).
Proof.
move=> big ok out; have count : #|~: S| * D <= H * (N - t).
  have -> : H * (N - t) = \sum_(j < H) (N - t) by rewrite sum_nat_const card_ord.
  apply: (@leq_trans (\sum_(j < H) #|[set i | dropped j i]|)); last by apply: leq_sum => j _; case: (ok j).
  under eq_bigr do rewrite -sum1dep_card; rewrite (exchange_big_dep predT) //= -sum_nat_const.
  rewrite [X in _ <= X](bigID (mem (~: S))) /= (leq_trans _ (leq_addr _ _)) //; apply: leq_sum => i iS.
  by move: (out i); rewrite inE in iS; rewrite (negPf iS) /pair_out -sum1dep_card.
have HD : H + m = 2 * D by lia.
have all : #|S| * D + #|~: S| * D = H * D by rewrite -mulnDl cardsC card_ord.
have : H * D = H * (N - t) + H * m by rewrite -mulnDr; congr (_ * _); lia.
rewrite HD; move: count all; move: #|S| #|~: S| => n1 n2; move: H D m (N - t) => *; nia.
Qed.

(* And it is attained by each number s of honest users with which it is compatible. *)
Section Attained.
Variable s : nat.
Hypotheses (s_gt0 : 0 < s) (s_le_H : s <= H) (enough : 2 * m * H <= s * (H + m)).

Definition claimed : rel 'I_H := fun j i => ~~ surv H s i && after D j i.
Definition S := [set i : 'I_H | surv H s i].

Lemma D_lt_H (i : 'I_H) : ~~ surv H s i -> D < H.
Proof.
have H0 := leq_trans s_gt0 s_le_H; have [sH|sH _] := leqP H s; last first.
  rewrite ltnNge; apply/negP => HD; have e : m = H by lia.
  move: enough; rewrite e; move: (N - c) s sH => h k; nia.
by rewrite /surv (_ : s = H) ?mulnK ?H0 ?ltnSn //; apply/eqP; rewrite eqn_leq sH s_le_H.
Qed.

(* Carries SAG-21, SAG-22, UNI-LIES. *)
Theorem lies_attained : [/\ answerable claimed, sum_out claimed S & #|S| = s].
Proof.
have H0 := leq_trans s_gt0 s_le_H; split=> [j|i|]; last exact: card_surv.
  split; last by apply/negP => /andP[/D_lt_H DH]; exact/negP/after_irr.
  case: (leqP H D) => [HD|DH].
    rewrite (_ : [set i | claimed j i] = set0) ?cards0 //; apply/setP => i; rewrite !inE.
    by apply/negbTE/negP => /andP[/D_lt_H]; rewrite ltnNge HD.
  apply: leq_trans (after_load s_gt0 s_le_H j DH) _; have : m <= D * s %/ H; last lia.
  rewrite leq_divRL //; case: (leqP (N + c) (2 * t)) => [big|small]; last by rewrite (_ : m = 0) //; lia.
  by move: enough; rewrite (_ : H + m = 2 * D) 1?mulnC; lia.
case: ifP; rewrite inE => surv_i; rewrite /self_out /pair_out.
  rewrite (_ : [set j | _] = setT) ?cardsT ?card_ord; first lia.
  by apply/setP => j; rewrite !inE /claimed surv_i.
rewrite (_ : [set j | _] = [set j | after D j i]); first exact: after_ge s_gt0 s_le_H _ (D_lt_H (negbT surv_i)).
by apply/setP => j; rewrite !inE /claimed surv_i.
Qed.
End Attained.

(* So the fewest honest users whose sum such a server gets are 2mH / (H + m) rounded up, and 1 where m is 0 or less. *)
Definition fewest := maxn 1 ((2 * m * H + (H + m).-1) %/ (H + m)).

Lemma fewest_le s : 0 < s -> (fewest <= s) = (2 * m * H <= s * (H + m)).
Proof.
move=> s0; have Hm : 0 < H + m by lia.
rewrite /fewest geq_max s0 /= -ltnS ltn_divLR // mulSn; lia.
Qed.

(* Carries SAG-21, SAG-22, UNI-LIES. *)
Theorem uni_lies :
  (exists dropped S, [/\ answerable dropped, sum_out dropped S & #|S| = fewest]) /\
  (forall dropped S, answerable dropped -> sum_out dropped S -> 0 < #|S| -> fewest <= #|S|).
Proof.
have pos : 0 < fewest by rewrite leq_max.
split=> [|dropped S' ok out S0].
  have [mH H0] : m <= H /\ 0 < H by lia.
  have le : fewest <= H by rewrite fewest_le //; move: H m mH {H0} => h k; nia.
  have enough : 2 * m * H <= fewest * (H + m) by rewrite -fewest_le.
  by have [ok out cS] := lies_attained pos le enough; exists (claimed fewest), (S fewest).
rewrite fewest_le //; case: (leqP (N + c) (2 * t)) => [big|small]; first exact: lies_bound.
by rewrite (_ : m = 0) ?muln0 //; lia.
Qed.
End Lies.
