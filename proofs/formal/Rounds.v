(* What sums over several sets tell of inputs that do not change (spec/heterosag.md, section 8; spec/multi-round.md, section 6;
   spec/basa.md, section 6).  Claims UNI-CELLS, UNI-BATCHES, UNI-BASAREUSE in part. *)
From mathcomp Require Import all_ssreflect all_algebra.
From secagg Require Import MultiRound.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

Section Rounds.
(* The sets of a cell whose sums were answered; the input of a user is the same in all of them. *)
Variables (G : zmodType) (N J : nat) (S : 'I_J -> {set 'I_N}).

(* The companions of i are the users that are in the same sets, i among them. *)
Definition companions i := [set k | [forall t, (k \in S t) == (i \in S t)]].

(* What the server has is a function of the sums over companions. *)
(* Carries HSA-27, HSA-28, UNI-CELLS. *)
Theorem only_companions (x x' : 'I_N -> G) :
  (forall i, \sum_(k in companions i) x k = \sum_(k in companions i) x' k) ->
  forall t, \sum_(k in S t) x k = \sum_(k in S t) x' k.
Proof.
move=> same t; pose batch i := [ffun t => i \in S t].
apply: (@only_batches G N J _ batch S _ (fun _ => x) (fun _ => x')) => [u i i' /ffunP/(_ u)|u b]; first by rewrite !ffunE.
case: (pickP [pred i | batch i == b]) => [i /= /eqP <-|no]; last by rewrite !big_pred0.
have set_eq : companions i =i [pred k | batch k == batch i].
  move=> k; rewrite !inE; apply/forallP/eqP => [all|/ffunP e v]; last by have := e v; rewrite !ffunE => ->.
  by apply/ffunP => v; rewrite !ffunE; exact/eqP.
by move: (same i); rewrite !(eq_bigl _ _ set_eq).
Qed.

(* So with T + 2 companions each, T colluders leave the sum over two honest users at least. *)
(* Carries HSA-27, UNI-CELLS. *)
Theorem honest_companions T (C : {set 'I_N}) i :
  (T.+2 <= #|companions i|)%N -> (#|C| <= T)%N -> (2 <= #|companions i :\: C|)%N.
Proof.
move=> big few; rewrite -(leq_add2l T) addn2 (leq_trans big) // -(cardsID C (companions i)) leq_add2r.
by rewrite (leq_trans _ few) // subset_leq_card // subsetIr.
Qed.

(* A user that is in one of two sums alone is isolated. *)
(* Carries HSA-27, MRA-21, BAA-27, UNI-BASAREUSE, UNI-CELLS, UNI-BATCHES. *)
Theorem isolated (x : 'I_N -> G) t u i : i \notin S u -> S t = i |: S u -> \sum_(k in S t) x k - \sum_(k in S u) x k = x i.
Proof. by move=> iS ->; rewrite big_setU1 //= addrK. Qed.
End Rounds.
