// Plays the rounds of a request on standard input with the scripts of the page "Play a round", as the page would.
const { createContext, runInContext } = require("node:vm");
const { scripts, protocol, numbers, inputs, choices } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const page = createContext({});
for (const script of scripts) runInContext(script, page);
const { open, say } = page.playRound;
const game = open(protocol, numbers, inputs);
const answers = choices.map((choice) => {
  const outcome = game.play(choice);
  const { known, stop, refusals } = outcome;
  const sums = (outcome.sums ?? []).map((sum) => [...sum]);
  return { known, stop, sums, refused: Object.keys(refusals).map(Number), ...say(game, choice, outcome) };
});
process.stdout.write(JSON.stringify(answers));
