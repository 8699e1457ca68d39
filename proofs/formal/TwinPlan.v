(* What the vectors of segment.plan say of the matrices, by the definitions of Heterosag.v and Perfect.v. *)
From Coq Require Import ZArith.
From mathcomp Require Import all_ssreflect all_algebra zify ssrZ.
From secagg Require Import Heterosag.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory. Local Open Scope ring_scope.

(* The row of a segment has -1 for a subgroup that is alone in its cell, and else the first subgroup of the cell.  A subgroup has
   itself as its partner when it is alone. *)
Definition none := Z.neg xH.
Definition partners (row : seq Z) (a b : nat) :=
  if a == b then nth Z0 row a == none else (nth Z0 row a != none) && (nth Z0 row a == nth Z0 row b).

Lemma partners_sym row a b : partners row a b = partners row b a.
Proof.
rewrite /partners eq_sym; case: eqP => [-> //|_].
by case: (eqVneq (nth Z0 row a) (nth Z0 row b)) => [->|]; rewrite ?eqxx ?andbF // eq_sym => /negPf ->; rewrite andbF.
Qed.

(* The cyclic matrix: the partner of a in segment l is l + 1 - a. *)
Definition plans n (rows : seq (seq Z)) :=
  size rows = n.+2 /\ forall l a b : 'I_n.+2, (Heterosag.cell l a == [set a; b]) = partners (nth [::] rows l) a b.

Definition twin_plans n (rows : seq (seq Z)) := (size rows == n.+2) &&
  all (fun l => all (fun a => all (fun b => ((a + b) %% n.+2 == l.+1 %% n.+2)%N == partners (nth [::] rows l) a b)
    (iota 0 n.+2)) (iota 0 n.+2)) (iota 0 n.+2).

Lemma in_iota n (k : 'I_n) : val k \in iota 0 n. Proof. by rewrite mem_iota ltn_ord. Qed.

Theorem plansP n rows : twin_plans n rows -> plans n rows.
Proof.
move=> /andP[/eqP size /allP all]; split=> // l a b.
have /eqP <- := allP (allP (all _ (in_iota l)) _ (in_iota a)) _ (in_iota b).
rewrite (_ : (_ %% _ == _ %% _)%N = (b == l + 1 - a)); last first.
  by rewrite [RHS]eq_sym subr_eq [b + a]addrC -val_eqE /= eq_sym modnDmr addn1.
apply/eqP/eqP => [e|->] //; have in_c c : (c \in Heterosag.cell l a) = (c \in [set a; b]) by rewrite e.
move: (in_c b) (in_c (l + 1 - a)); rewrite !inE !eqxx !orbT => /orP[/eqP ba|/eqP //] /esym/orP[/eqP sa|/eqP //].
by rewrite ba sa.
Qed.

(* Any matrix of the kind of Perfect.v: the partners are those of a function with its two premises. *)
Definition factors Z (rows : seq (seq BinNums.Z)) := exists partner : 'I_Z -> 'I_Z -> 'I_Z,
  [/\ forall l a b : 'I_Z, (partner l a == b) = partners (nth [::] rows l) a b,
      forall l, involutive (partner l) & forall a b, exists! l, partner l a = b].

Definition twin_factors Z (rows : seq (seq BinNums.Z)) := [&& size rows == Z,
    all (fun row => all (fun a => count (partners row a) (iota 0 Z) == 1%N) (iota 0 Z)) rows
  & all (fun a => all (fun b => count (fun row => partners row a b) rows == 1%N) (iota 0 Z)) (iota 0 Z)].

Lemma count_one n (P : pred nat) : count P (iota 0 n) = 1%N -> exists2 b : 'I_n, P b & forall c : 'I_n, P c -> c = b.
Proof.
move=> one; have [b bP] : exists b : 'I_n, P b.
  have /hasP [c] : has P (iota 0 n) by rewrite has_count one.
  by rewrite mem_iota add0n => lt Pc; exists (Ordinal lt).
exists b => // c cP; apply/eqP; apply: contraTT isT => cb.
have : (size [:: val b; val c] <= size (filter P (iota 0 n)))%N.
  apply: uniq_leq_size => [|k]; first by rewrite /= inE eq_sym andbT; exact: cb.
  by rewrite !inE mem_filter => /orP[]/eqP->; rewrite ?bP ?cP in_iota.
by rewrite size_filter one.
Qed.

Theorem factorsP Z rows : twin_factors Z rows -> factors Z rows.
Proof.
move=> /and3P[/eqP sz /allP cells /allP pairs]; pose row (l : 'I_Z) := nth [::] rows l.
have ex l (a : 'I_Z) : exists2 b : 'I_Z, partners (row l) a b & forall c : 'I_Z, partners (row l) a c -> c = b.
  have lt : (l < size rows)%N by rewrite sz.
  apply: (@count_one _ (partners (row l) a)).
  by have /eqP := allP (cells _ (mem_nth [::] lt)) _ (in_iota a).
have ex' l (a : 'I_Z) : exists b : 'I_Z, partners (row l) a b by have [b] := ex l a; exists b.
pose partner l a := xchoose (ex' l a).
have partnerE l (a b : 'I_Z) : (partner l a == b) = partners (row l) a b.
  apply/eqP/idP => [<-|ab]; first exact: (xchooseP (ex' l a)).
  by have [c _ all] := ex l a; rewrite (all b) // (all (partner l a)) //; exact: (xchooseP (ex' l a)).
exists partner; split=> [//|l a|a b]; first by apply/eqP; rewrite partnerE partners_sym -partnerE.
have [l lP all] : exists2 l : 'I_Z, partners (row l) a b & forall k : 'I_Z, partners (row k) a b -> k = l.
  apply: (@count_one _ (fun l => partners (nth [::] rows l) a b)).
  have /eqP <- := allP (pairs _ (in_iota a)) _ (in_iota b).
  by rewrite -[X in _ = count _ X](mkseq_nth [::]) sz /mkseq count_map.
by exists l; split=> [|k /eqP]; [apply/eqP; rewrite partnerE | rewrite partnerE => /all].
Qed.
