#include "stagecraft/tools/train/options/parse_options.h"

#include <fmt/format.h>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tools/train/options/update_rule.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

TrainOptions options_of(const std::vector<std::string>& arguments) {
  return std::get<TrainOptions>(parse_train_options(arguments));
}

std::string failure_of(const std::vector<std::string>& arguments) {
  return refusal([&] { (void)parse_train_options(arguments); });
}

}  // namespace

TEST_CASE("a setting is a key and a value, each key once", "[tools][options]") {
  CHECK_THAT(failure_of({"--set", "k"}), ContainsSubstring("--set expects KEY=VALUE, found 'k'"));
  CHECK_THAT(failure_of({"--set", "=2"}), ContainsSubstring("found '=2'"));
  CHECK_THAT(failure_of({"--set", "k=1", "--set", "k=2"}), ContainsSubstring("names k twice"));
}

TEST_CASE("what a run keeps and continues from is asked for whole", "[tools][options]") {
  const TrainOptions o = options_of({"--resume", "run/", "--save-every", "5"});
  CHECK(o.keeping.resume == "run");
  CHECK(o.keeping.save_dir == "run");
  CHECK(o.keeping.keep == 3);
  CHECK(o.keeping.seed_from == SeedChoice::Same);
  CHECK(options_of({"--load", "x", "--seed-from", "option"}).keeping.seed_from ==
        SeedChoice::Option);
  CHECK_THAT(failure_of({"--load", "x", "--resume", "y"}),
             ContainsSubstring("--resume expects no"));
  CHECK_THAT(failure_of({"--save-every", "5"}), ContainsSubstring("expects --save-dir DIR"));
  CHECK_THAT(failure_of({"--save-dir", "x", "--keep", "2"}),
             ContainsSubstring("--keep expects --save-every"));
  CHECK_THAT(failure_of({"--seed-from", "option"}),
             ContainsSubstring("expects --load or --resume"));
  CHECK_THAT(failure_of({"--load", "x", "--seed-from", "both"}),
             ContainsSubstring("checkpoint or option, found 'both'"));
}

TEST_CASE("a run folder gives the other files their places", "[tools][options]") {
  const KeepingOptions all = options_of({"--run-dir", "run/"}).keeping;
  CHECK(all.run_dir == "run");
  CHECK(all.save_dir == "run/checkpoints");
  CHECK(all.resume == "run/checkpoints");
  CHECK(all.metrics == "run/metrics");
  CHECK(all.logs == "run/logs");
  CHECK_FALSE(all.trace);
  const KeepingOptions given =
      options_of({"--run-dir", "run", "--save-dir", "kept", "--metrics", "table"}).keeping;
  CHECK(given.save_dir == "kept");
  CHECK(given.resume == "kept");
  CHECK(given.metrics == "table");
  CHECK_THAT(failure_of({"--run-dir", "run", "--resume", "old"}),
             ContainsSubstring("--run-dir expects no --resume"));
  const KeepingOptions resumed =
      options_of({"--run-dir", "run", "--resume", "old", "--save-dir", "new"}).keeping;
  CHECK(resumed.save_dir == "new");
  CHECK(resumed.resume == "old");
  CHECK(options_of({}).keeping.logs.empty());
  CHECK_THAT(failure_of({"--run-dir", "run", "--load", "x"}),
             ContainsSubstring("--run-dir expects no --load"));
}

TEST_CASE("without arguments the main job's defaults hold", "[tools][options]") {
  const TrainOptions o = options_of({});
  CHECK(o.data.text == "/usr/share/common-licenses/GPL-3");
  CHECK(o.model.name == "llama");
  CHECK(std::vector{o.model.sizes.whole("dim"),
                    o.model.sizes.whole("heads"),
                    o.model.sizes.whole("ffn"),
                    o.model.sizes.whole("seq")} == std::vector<std::int64_t>{128, 4, 344, 64});
  CHECK_FALSE(o.pipeline.microbatch_size.has_value());
  CHECK_FALSE(o.run.steps.has_value());
  CHECK_FALSE(o.model.sizes.has("layers"));
  CHECK_FALSE(o.pipeline.stages.has_value());
  CHECK_FALSE(o.pipeline.ranks.has_value());
  CHECK_FALSE(o.pipeline.chunks.has_value());
  CHECK(o.pipeline.set.empty());
  CHECK_FALSE(o.pipeline.microbatches.has_value());
  CHECK(o.optimizer.name == "adamw");
  CHECK(o.optimizer.settings.empty());
  CHECK(o.optimizer.decay_on == DecayKind::Matrices);
  CHECK((o.optimizer.freeze.empty() && o.optimizer.no_decay.empty()));
  CHECK(o.optimizer.rate == 3e-4);
  CHECK(o.optimizer.rate_kind == RateKind::Constant);
  CHECK_FALSE(o.optimizer.clip.has_value());
  CHECK(o.run.seed == 0);
}

TEST_CASE("every option arrives where it belongs", "[tools][options]") {
  const TrainOptions o = options_of({"--text",
                                     "t",
                                     "--layers",
                                     "6",
                                     "--dim",
                                     "32",
                                     "--heads",
                                     "2",
                                     "--ffn",
                                     "48",
                                     "--seq",
                                     "16",
                                     "--microbatch-size",
                                     "2",
                                     "--microbatches",
                                     "5",
                                     "--stages",
                                     "3",
                                     "--ranks",
                                     "7",
                                     "--chunks",
                                     "9",
                                     "--set",
                                     "k=2",
                                     "--set",
                                     "extra=2,1",
                                     "--schedule",
                                     "gpipe",
                                     "--steps",
                                     "9",
                                     "--optimizer",
                                     "sgd",
                                     "--lr",
                                     "0.5",
                                     "--lr-schedule",
                                     "cosine",
                                     "--warmup",
                                     "2",
                                     "--weight-decay",
                                     "0.25",
                                     "--momentum",
                                     "0.75",
                                     "--nesterov",
                                     "--decay-on",
                                     "all",
                                     "--no-decay",
                                     "*.bias",
                                     "--freeze",
                                     "embed*",
                                     "--no-decay",
                                     "norm.*",
                                     "--clip",
                                     "1.5",
                                     "--seed",
                                     "11",
                                     "--threads-per-worker",
                                     "2",
                                     "--memory-limit",
                                     "512M",
                                     "--eval-every",
                                     "4",
                                     "--step-deadline",
                                     "1.5",
                                     "--save",
                                     "s",
                                     "--load",
                                     "l",
                                     "--dry-run",
                                     "--verify",
                                     "--json"});
  CHECK(o.pipeline.set == std::map<std::string, std::string>{{"k", "2"}, {"extra", "2,1"}});
  CHECK(std::vector{o.model.sizes.whole("layers"),
                    o.model.sizes.whole("dim"),
                    o.model.sizes.whole("heads"),
                    o.model.sizes.whole("ffn"),
                    o.model.sizes.whole("seq"),
                    *o.pipeline.microbatch_size,
                    *o.pipeline.microbatches,
                    *o.pipeline.stages,
                    *o.pipeline.ranks,
                    *o.pipeline.chunks} ==
        std::vector<std::int64_t>{6, 32, 2, 48, 16, 2, 5, 3, 7, 9});
  CHECK(std::vector{o.data.text, o.pipeline.schedule, *o.keeping.save, *o.keeping.load} ==
        std::vector<std::string>{"t", "gpipe", "s", "l"});
  CHECK(std::vector{*o.run.steps, o.optimizer.warmup, o.workers.threads, *o.run.eval_every} ==
        std::vector<std::int64_t>{9, 2, 2, 4});
  CHECK(std::vector{o.optimizer.rate, *o.optimizer.clip} == std::vector{0.5, 1.5});
  CHECK(o.optimizer.settings ==
        std::map<std::string, double>{{"weight_decay", 0.25}, {"momentum", 0.75}, {"nesterov", 1}});
  CHECK(o.optimizer.name == "sgd");
  CHECK(o.optimizer.decay_on == DecayKind::All);
  CHECK(o.optimizer.no_decay == std::vector<std::string>{"*.bias", "norm.*"});
  CHECK(o.optimizer.freeze == std::vector<std::string>{"embed*"});
  CHECK(o.optimizer.rate_kind == RateKind::Cosine);
  CHECK(o.run.seed == 11);
  CHECK(o.run.step_deadline == 1.5);
  CHECK(o.workers.memory_limit == 512 << 20);
  CHECK((o.run.dry_run && o.run.verify && o.run.json));
}

TEST_CASE("numbers that make no sense are refused, with the option named", "[tools][options]") {
  const std::string option = GENERATE("--layers",
                                      "--dim",
                                      "--heads",
                                      "--ffn",
                                      "--seq",
                                      "--microbatch-size",
                                      "--microbatches",
                                      "--stages",
                                      "--steps",
                                      "--threads-per-worker",
                                      "--memory-limit",
                                      "--eval-every");
  const std::string value = GENERATE("0", "-1", "many", "1.5", "99999999999999999999", "");
  CHECK_THAT(failure_of({option, value}), ContainsSubstring(option + " expects"));
}

TEST_CASE("a number that is too large is told how large it may be", "[tools][options]") {
  CHECK_THAT(failure_of({"--steps", "2147483648"}),
             ContainsSubstring("a whole number from 1 to 2147483647, found '2147483648'"));
}

TEST_CASE("more threads than any machine has processors are refused", "[tools][options]") {
  CHECK(options_of({"--threads-per-worker", "1024"}).workers.threads == 1024);
  CHECK_THAT(failure_of({"--threads-per-worker", "1025"}),
             ContainsSubstring("a whole number from 1 to 1024, found '1025'"));
}

TEST_CASE("real numbers are refused outside their range", "[tools][options]") {
  CHECK_THAT(failure_of({"--lr", "0"}), ContainsSubstring("greater than 0, found '0'"));
  CHECK_THAT(failure_of({"--lr", "nan"}), ContainsSubstring("found 'nan'"));
  CHECK_THAT(failure_of({"--clip", "-1"}), ContainsSubstring("greater than 0"));
  CHECK_THAT(failure_of({"--clip-value", "0"}), ContainsSubstring("greater than 0"));
  CHECK_THAT(failure_of({"--average", "1"}), ContainsSubstring("less than 1"));
  CHECK_THAT(failure_of({"--weight-decay", "-0.1"}), ContainsSubstring("at least 0"));
  CHECK_THAT(failure_of({"--optimizer", "sgd", "--momentum", "1"}),
             ContainsSubstring("less than 1"));
  CHECK_THAT(failure_of({"--beta2", "1"}), ContainsSubstring("less than 1"));
  CHECK_THAT(failure_of({"--optimizer", "adagrad", "--lr-decay", "-1"}),
             ContainsSubstring("at least 0"));
  CHECK_THAT(failure_of({"--step-deadline", "0"}), ContainsSubstring("greater than 0, found '0'"));
  for (const char* value : {"0.0005", "31536001", "1e300"}) {
    CHECK_THAT(failure_of({"--step-deadline", value}),
               ContainsSubstring("--step-deadline expects 0.001 to 31536000 seconds, found"));
  }
}

TEST_CASE("an unknown option is named and the nearest known one suggested", "[tools][options]") {
  CHECK_THAT(failure_of({"--layer", "3"}),
             ContainsSubstring("'--layer'") && ContainsSubstring("--layers?"));
  CHECK_THAT(failure_of({"--stepz=3"}),
             ContainsSubstring("'--stepz'") && ContainsSubstring("--steps?"));
  CHECK_THAT(failure_of({"text.txt"}), ContainsSubstring("'text.txt'"));
}

TEST_CASE("an option needs exactly one value", "[tools][options]") {
  CHECK_THAT(failure_of({"--layers"}), ContainsSubstring("--layers expects one value, found none"));
  CHECK_THAT(failure_of({"--steps", "3", "--steps", "4"}), ContainsSubstring("found several"));
}

TEST_CASE("options that contradict each other are refused", "[tools][options]") {
  CHECK_THAT(failure_of({"--dim", "32", "--heads", "3"}), ContainsSubstring("divisor of --dim 32"));
  CHECK_THAT(failure_of({"--dim", "6", "--heads", "2"}), ContainsSubstring("even"));
  CHECK_THAT(failure_of({"--momentum", "0.9"}),
             ContainsSubstring("--momentum expects --optimizer sgd or rmsprop, found adamw"));
  CHECK_THAT(failure_of({"--optimizer", "adagrad", "--beta2", "0.9"}),
             ContainsSubstring("--beta2 expects --optimizer adamw or adam, found adagrad"));
  CHECK_THAT(failure_of({"--optimizer", "sgd", "--centered"}),
             ContainsSubstring("--centered expects --optimizer rmsprop, found sgd"));
  CHECK_THAT(failure_of({"--steps", "5", "--warmup", "6"}), ContainsSubstring("at most --steps 5"));
  CHECK_THAT(failure_of({"--lr-schedule", "plateau"}), ContainsSubstring("expects --eval-every"));
  CHECK_THAT(failure_of({"--lr-patience", "2"}),
             ContainsSubstring("--lr-patience expects --lr-schedule plateau"));
  CHECK_THAT(failure_of({"--lr-factor", "0.5"}),
             ContainsSubstring("--lr-factor expects --lr-schedule plateau or epoch"));
  CHECK_THAT(failure_of({"--lr-epochs", "1"}), ContainsSubstring("expects --lr-schedule epoch"));
  CHECK_THAT(failure_of({"--lr-epochs", "0"}), ContainsSubstring("--lr-epochs expects"));
  CHECK_THAT(failure_of({"--lr-schedule", "epoch"}),
             ContainsSubstring("--lr-schedule epoch expects --data"));
  CHECK_THAT(failure_of({"--clip", "1", "--clip-value", "1"}),
             ContainsSubstring("--clip-value") && ContainsSubstring("--clip"));
  CHECK_THAT(failure_of({"--save-averages", "--save-weights", "w"}),
             ContainsSubstring("--save-averages expects --average"));
  CHECK_THAT(failure_of({"--save-averages", "--average", "0.9"}),
             ContainsSubstring("--save-averages expects --save-weights"));
  CHECK_THAT(failure_of({"--lr-schedule", "plateau", "--eval-every", "2", "--lr-factor", "1"}),
             ContainsSubstring("--lr-factor expects a number below 1"));
  CHECK_THAT(failure_of({"--decay-steps", "6"}), ContainsSubstring("expects --lr-schedule wsd"));
  CHECK_THAT(
      failure_of({"--lr-schedule", "wsd", "--steps", "9", "--warmup", "4", "--decay-steps", "6"}),
      ContainsSubstring("at most 9 steps together, found 4 and 6"));
  CHECK_THAT(
      failure_of({"--lr-schedule", "wsd", "--steps", "9", "--warmup", "9"}),
      ContainsSubstring("--warmup expects at most 8 of 9 steps with --lr-schedule wsd, found "
                        "9: the rate falls in the last") &&
          !ContainsSubstring("--decay-steps"));
  CHECK_THAT(failure_of({"--lr-schedule", "wsd", "--steps", "9", "--decay-steps", "10"}),
             ContainsSubstring("--decay-steps expects at most 9 steps, found 10") &&
                 !ContainsSubstring("--warmup"));
  CHECK_THAT(failure_of({"--optimizer", "lion"}),
             ContainsSubstring("adamw, sgd, adam, adagrad or rmsprop, found 'lion'"));
  CHECK_THAT(failure_of({"--lr-schedule", "steps"}),
             ContainsSubstring("constant, cosine, linear, wsd, plateau or epoch"));
  CHECK_THAT(failure_of({"--decay-on", "vectors"}), ContainsSubstring("matrices or all"));
}

TEST_CASE("groups, limits of elements and averages arrive as they were given", "[tools][options]") {
  const TrainOptions o = options_of({"--freeze-for",
                                     "b.*=20",
                                     "--freeze-for",
                                     "a.*=3",
                                     "--freeze",
                                     "c.*",
                                     "--no-decay",
                                     "d.*",
                                     "--clip-value",
                                     "0.5",
                                     "--average",
                                     "0.75",
                                     "--master-weights",
                                     "--save-weights",
                                     "w",
                                     "--save-averages"});
  CHECK(o.optimizer.clip_value == 0.5);
  CHECK(o.optimizer.average == 0.75);
  CHECK(o.optimizer.master_weights);
  CHECK(o.keeping.save_averages);
  const std::vector<ParameterGroup> groups = make_groups(o.optimizer);
  REQUIRE(groups.size() == 4);
  CHECK((groups[0].match == "c.*" && groups[0].frozen));
  CHECK((groups[1].match == "b.*" && groups[1].frozen_for == 20));
  CHECK((groups[2].match == "a.*" && groups[2].frozen_for == 3));
  CHECK((groups[3].match == "d.*" && groups[3].weight_decay == 0.0));
  CHECK(kept_tensors(o.optimizer) == 3);
  CHECK(kept_tensors(options_of({}).optimizer) == 2);
  CHECK(kept_type(o.optimizer, at::kBFloat16) == at::kFloat);
  CHECK(kept_type(o.optimizer, at::kDouble) == at::kDouble);
  CHECK(kept_type(options_of({}).optimizer, at::kHalf) == at::kHalf);
  for (const char* wrong : {"a.*", "a.*=", "=3", "a.*=0", "a.*=-1", "a.*=1.5", "a.*=many"}) {
    CHECK_THAT(failure_of({"--freeze-for", wrong}),
               ContainsSubstring("--freeze-for expects PATTERN=STEPS") &&
                   ContainsSubstring(fmt::format("found '{}'", wrong)));
  }
}

TEST_CASE("a rate by epoch falls whenever the data were read so often", "[tools][options]") {
  const auto factors = [](const OptimizerOptions& o) {
    std::vector<double> all;
    for (const std::int64_t batch : {0, 4, 5, 9, 10, 15, 20}) {
      all.push_back(epoch_factor(o, batch, /*batches=*/5));
    }
    return all;
  };
  const OptimizerOptions each{.rate_kind = RateKind::Epoch, .lr_factor = 0.5};
  CHECK(factors(each) == std::vector{1.0, 1.0, 0.5, 0.5, 0.25, 0.125, 0.0625});
  const OptimizerOptions second{.rate_kind = RateKind::Epoch, .lr_factor = 0.5, .lr_epochs = 2};
  CHECK(factors(second) == std::vector{1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.25});
  CHECK(epoch_factor({.rate_kind = RateKind::Epoch}, 5, 5) == Plateau().factor);
}

TEST_CASE("a plateau has the library's numbers, or those that are given", "[tools][options]") {
  const auto plateau_of = [](const std::vector<std::string>& more) {
    std::vector<std::string> words{"--lr-schedule", "plateau", "--eval-every", "5"};
    words.insert(words.end(), more.begin(), more.end());
    return make_plateau(options_of(words).optimizer).value();
  };
  CHECK(plateau_of({}).factor == Plateau().factor);
  CHECK(plateau_of({}).patience == Plateau().patience);
  CHECK(plateau_of({"--lr-factor", "0.5"}).factor == 0.5);
  CHECK(plateau_of({"--lr-patience", "3"}).patience == 3);
  CHECK_FALSE(make_plateau(options_of({}).optimizer));
}

TEST_CASE("a wsd learning rate falls in a tenth of the steps, or as many as are given",
          "[tools][options]") {
  const auto decay_of = [](const std::vector<std::string>& options, std::int64_t steps) {
    return make_learning_rate(options_of(options).optimizer, steps).decay;
  };
  CHECK(decay_of({"--lr-schedule", "wsd", "--steps", "90"}, 90) == 9);
  CHECK(decay_of({"--lr-schedule", "wsd", "--steps", "5"}, 5) == 1);
  CHECK(decay_of({"--lr-schedule", "wsd", "--steps", "50", "--warmup", "47"}, 50) == 3);
  CHECK(decay_of({"--lr-schedule", "wsd", "--decay-steps", "7"}, 50) == 7);
  CHECK(decay_of({"--lr-schedule", "linear"}, 50) == 0);
}

TEST_CASE("what to recompute is a word or a list of names", "[tools][options]") {
  CHECK(options_of({}).pipeline.recompute == Recompute::nothing());
  CHECK(options_of({"--recompute", "stage"}).pipeline.recompute == Recompute::stages());
  CHECK(options_of({"--recompute", "layers.1,s0"}).pipeline.recompute ==
        Recompute::named({"layers.1", "s0"}));
  for (const char* value : {"", ",", "a,,b", "a,"}) {
    CHECK_THAT(failure_of({"--recompute", value}), ContainsSubstring("--recompute"));
  }
}

TEST_CASE("help lists every option", "[tools][options]") {
  const std::string help = std::get<HelpText>(parse_train_options({"--help"})).text;
  for (const char* option : {"--text",
                             "--layers",
                             "--stages",
                             "--schedule",
                             "--clip",
                             "--step-deadline",
                             "--memory-limit",
                             "--dry-run",
                             "--recompute",
                             "--verify"}) {
    CHECK_THAT(help, ContainsSubstring(option));
  }
}

TEST_CASE("help names numbers alike in all commands", "[tools][options]") {
  const std::string help = std::get<HelpText>(parse_train_options({"--help"})).text;
  CHECK_THAT(help, ContainsSubstring("--layers N ") && ContainsSubstring("--lr X "));
  for (const char* name : {" INT", " UINT", " FLOAT"}) {
    CHECK_THAT(help, !ContainsSubstring(name));
  }
}

}  // namespace stagecraft::tools
