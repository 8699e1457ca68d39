// Plays the rounds of a request on standard input with the scripts of the page "Play a round", as the page would.
const vm = require("node:vm");
const { scripts, games } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const page = vm.createContext({});
for (const script of scripts) vm.runInContext(script, page);
const { open, say } = page.playRound;
const answers = games.map(({ protocol, numbers, inputs, choices }) => {
  const game = open(protocol, numbers, inputs);
  return choices.map((choice) => {
    const outcome = game.play(choice);
    const known = outcome.known.map(({ R, names, basis }) => ({ R, names, basis }));
    const { stop, refusals, sums } = outcome;
    return { known, stop, refused: Object.keys(refusals).map(Number), sums: sums && sums.map((sum) => [...sum]), ...say(game, choice, outcome) };
  });
});
process.stdout.write(JSON.stringify(answers));
