(* The active profile of LightSecAgg (spec/lightsecagg.md, section 9): two different sets signed.  Claim UNI-QUORUM. *)
From mathcomp Require Import all_ssreflect.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(* Of N users only those of C sign more than one set; at most T are in C.  When W of its members sign each of two different
   sets, 2W <= N + T. *)
(* Carries LSA-19, LSA-26, SAG-50, SAG-60, BSA-37, UNI-QUORUM. *)
Theorem quorum (N W T : nat) (C S1 S2 : {set 'I_N}) :
  #|C| <= T -> W <= #|S1| -> W <= #|S2| -> (forall i, i \in S1 -> i \in S2 -> i \in C) -> 2 * W <= N + T.
Proof.
move=> leC le1 le2 both; rewrite mul2n -addnn (leq_trans (leq_add le1 le2)) // -cardsUI leq_add //.
  by rewrite -[X in _ <= X](card_ord N) max_card.
by rewrite (leq_trans _ leC) // subset_leq_card //; apply/subsetP => i /setIP[]; exact: both.
Qed.

(* And when 2W <= N + T it can happen: T < W <= N. *)
(* Carries LSA-19, SAG-50, BSA-37, UNI-QUORUM. *)
Theorem quorum_tight (N W T : nat) : T < W <= N -> 2 * W <= N + T ->
  exists C S1 S2 : {set 'I_N}, [/\ #|C| <= T, #|S1| = W, #|S2| = W, S1 != S2 & S1 :&: S2 \subset C].
Proof.
move=> /andP[TW WN] le2.
have pre k : k <= N -> #|[set i : 'I_N | i < k]| = k.
  by move=> kN; rewrite -sum1dep_card -(big_ord_widen _ (fun=> 1) kN) sum1_card card_ord.
pose k := N - (W - T); pose hi := [set i : 'I_N | k <= i].
have WTN : W - T <= N by rewrite (leq_trans (leq_subr _ _)).
have Wk : W <= k by rewrite leq_subRL // addnBAC ?(ltnW TW) // leq_subLR addnn -mul2n addnC.
have cardhi : #|hi| = W - T.
  rewrite (_ : hi = ~: [set i : 'I_N | i < k]); last by apply/setP => i; rewrite !inE leqNgt.
  by rewrite cardsCs setCK card_ord pre ?leq_subr // subKn.
have off (i : 'I_N) : i < W -> ~ i \in hi by move=> iW; rewrite inE leqNgt (leq_trans iW Wk).
exists [set i : 'I_N | i < T], [set i : 'I_N | i < W], ([set i : 'I_N | i < T] :|: hi); split.
- by rewrite pre // (leq_trans (ltnW TW)).
- exact: pre.
- rewrite cardsU pre ?(leq_trans (ltnW TW)) // cardhi (_ : _ :&: _ = set0) ?cards0 ?subn0 ?subnKC ?(ltnW TW) //.
  apply/setP => i; rewrite inE in_set0; apply/negP => /andP[]; rewrite inE => iT /off; apply.
  exact: (ltn_trans iT TW).
- have TN : T < N by exact: leq_trans TW WN.
  apply/eqP => /setP /(_ (Ordinal TN)); rewrite !inE /= TW ltnn /= => /esym.
  by rewrite leqNgt (leq_trans TW Wk).
- by apply/subsetP => i; rewrite !inE => /andP[iW /orP[//|]]; rewrite leqNgt (leq_trans iW Wk).
Qed.
