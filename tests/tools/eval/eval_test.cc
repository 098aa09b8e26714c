/// Tests `stagecraft eval`: its loss is that of the library, and that of a run which evaluates.
#include "stagecraft/tools/eval/eval.h"

#include <algorithm>
#include <filesystem>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/compiler/data/microbatch_files.h"
#include "stagecraft/compiler/import/describe_inputs.h"
#include "stagecraft/compiler/import/load_model.h"
#include "stagecraft/compiler/tensor_files/npy.h"
#include "stagecraft/compiler/tensor_files/weights.h"
#include "stagecraft/tests/compiler/import/made_script.h"
#include "stagecraft/tests/compiler/import/unpacked_inputs.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/common/command_run.h"
#include "stagecraft/tests/tools/common/json_shape.h"
#include "stagecraft/tests/tools/common/runtime_run.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using Words = std::vector<std::string>;

std::string evaluated_archive(const std::string& name) {
  return fmt::format("{}/tests/data/models/{}", STAGECRAFT_SOURCE_DIR, name);
}

std::string evaluated_data(const std::string& name) {
  return testing::unpacked_inputs(evaluated_archive(name));
}

Words with_more(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Returns the words of `stagecraft eval` on a model file.
Words words_of(const std::string& name, const std::string& file, const Words& more = {}) {
  return with_more(
      {"--model-file", evaluated_archive(name) + "/" + file, "--data", evaluated_data(name)}, more);
}

CommandResult run_eval(const Words& words) {
  return run_in_test(&tools::evaluate_model, words);
}

/// Checks a message that may have several lines.
void check_refused(const CommandResult& result, const Words& parts) {
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  for (const std::string& part : parts) {
    CHECK_THAT(result.err, ContainsSubstring(part));
  }
}

json eval_json(const Words& words) {
  const CommandResult result = run_eval(with_more(words, {"--json"}));
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
  return check_json_shape("eval", result.out).at(0);
}

/// Returns the losses of a run's evaluations.
std::vector<double> evaluations_of(const TrainOutput& output) {
  std::vector<double> losses;
  for (const json& event : output.others) {
    if (event.at("event") == "eval") {
      losses.push_back(event.at("loss"));
    }
  }
  return losses;
}

/// Returns a training on a model file that evaluates on a step of other data.
Words evaluated_training(const std::string& name, const std::string& held_out, const Words& more) {
  return with_more({STAGECRAFT_COMMAND,
                    "train",
                    "--model-file",
                    evaluated_archive(name) + "/model.pt2",
                    "--data",
                    evaluated_data(name),
                    "--optimizer",
                    "sgd",
                    "--lr",
                    "0.05",
                    "--eval-data",
                    held_out},
                   more);
}

/// Copies the last two steps of the archive's data to a folder, where they begin at 0.
void copy_last_steps(const std::string& name, const std::string& to) {
  for (const auto& entry : std::filesystem::directory_iterator(evaluated_data(name))) {
    const std::string file = entry.path().filename().string();
    if (file.starts_with("step3") || file.starts_with("step4")) {
      std::filesystem::copy_file(entry.path(),
                                 fmt::format("{}/step{}{}", to, file[4] - '3', file.substr(5)));
    }
  }
}

TEST_CASE("eval prints the loss that the library's evaluate finds", "[tools][eval]") {
  // In evaluation mode, the resnet normalizes by running statistics.
  const auto [name, file] = GENERATE(std::pair<std::string, std::string>{"resnet", "model.pt2"},
                                     std::pair<std::string, std::string>{"gpt2", "model.pt"});
  CAPTURE(name, file);
  ModelFile model = load_model(evaluated_archive(name) + "/" + file);
  const MicrobatchFiles data(evaluated_data(name));
  describe_inputs(model, data);
  std::vector<LabeledBatch> batches;
  for (std::int64_t step = 0; step < data.steps(); ++step) {
    batches.push_back({data.batch(step), {}});
  }
  Trainer trainer(
      compile(model,
              {.inputs = batches.front().inputs, .microbatches = data.microbatches(), .cut = At{}}),
      "1f1b",
      Sgd{});
  const double expected = trainer.evaluate(batches).loss;

  const json found = eval_json(words_of(name, file));
  CHECK(found.at("model") == evaluated_archive(name) + "/" + file);
  CHECK(found.at("loss").get<double>() == expected);
  CHECK(found.at("batches") == data.steps());
  CHECK(found.at("microbatches") == data.steps() * data.microbatches());
  CHECK(found.at("samples").get<std::int64_t>() % data.steps() == 0);
  CHECK(found.at("samples_per_second").get<double>() > 0.0);
  const CommandResult people = run_eval(words_of(name, file));
  CHECK(people.exit_code == 0);
  CHECK_THAT(people.out,
             ContainsSubstring(fmt::format("evaluation loss {:.4f}", expected)) &&
                 ContainsSubstring("20 microbatches") && ContainsSubstring("samples/s"));
}

TEST_CASE("a run on a model file evaluates on the data held out, and eval finds the same",
          "[tools][train][eval][model-file]") {
  const TemporaryFolder held_out, saved;
  const std::string name = "resnet";
  copy_last_steps(name, held_out.path());
  const std::string weights = saved.path() + "/w.safetensors";
  const std::string checkpoint = saved.path() + "/a.ckpt";
  const std::string metrics = saved.path() + "/m";
  const TrainOutput output = train_output(evaluated_training(name,
                                                             held_out.path(),
                                                             {"--stages",
                                                              "2",
                                                              "--steps",
                                                              "4",
                                                              "--eval-every",
                                                              "2",
                                                              "--metrics",
                                                              metrics,
                                                              "--save-weights",
                                                              weights,
                                                              "--save",
                                                              checkpoint}));
  const std::vector<double> losses = evaluations_of(output);
  REQUIRE(losses.size() == 2);
  CHECK(losses[0] != losses[1]);
  CHECK_THAT(read_text_file(metrics + "/metrics.csv"), ContainsSubstring("eval_loss"));

  const Words words{
      "--model-file", evaluated_archive(name) + "/model.pt2", "--data", held_out.path()};
  for (const Words& from : {Words{"--load-weights", weights}, Words{"--load", checkpoint}}) {
    CAPTURE(from);
    const json found = eval_json(with_more(words, from));
    CHECK(found.at("batches") == 2);
    CHECK(found.at("loss").get<double>() == Catch::Approx(losses[1]).epsilon(1e-6).margin(0));
  }
  CHECK(eval_json(words).at("loss").get<double>() != Catch::Approx(losses[1]).epsilon(1e-6));

  // Evaluations change nothing, and the rate of a plateau can follow them.
  Words without = evaluated_training(
      name, held_out.path(), {"--stages", "2", "--steps", "4", "--eval-every", "3"});
  CHECK(train_output(without).sha256() == output.sha256());
  CHECK(evaluations_of(train_output(with_more(without, {"--lr-schedule", "plateau"}))).size() == 1);
}

TEST_CASE("the part of shards that a run holds out is evaluated, also by eval",
          "[tools][train][eval][model-file]") {
  const TemporaryFolder folder;
  const std::string model = folder.path() + "/m.pt", data = folder.path() + "/data";
  const std::string weights = folder.path() + "/w";
  testing::save_script(
      model,
      "def forward(self, x, y):\n  return (x.matmul(self.w) - y).square().mean()\n",
      {{"w", at::zeros({3, 2}).requires_grad_(true)}});
  std::filesystem::create_directory(data);
  const at::Tensor x = at::arange(120, at::kFloat).view({40, 3}).div(60);
  write_npy(data + "/a_arg0.npy", x);
  write_npy(data + "/a_arg1.npy", x.narrow(1, 0, 2).square());
  const Words words{
      "--model-file", model, "--data", data, "--held-out", "0.2", "--microbatch-size", "4"};
  const Words run{"--microbatches", "2", "--stages", "1", "--lr", "0.1", "--eval-every", "2"};
  const TrainOutput output =
      train_output(with_more(with_more(with_more({STAGECRAFT_COMMAND, "train"}, words), run),
                             {"--steps", "4", "--save-weights", weights}));
  const std::vector<double> losses = evaluations_of(output);
  REQUIRE(losses.size() == 2);
  const Words trained = with_more(words, {"--load-weights", weights});
  const json found = eval_json(trained);
  CHECK(found.at("samples") == 8);
  CHECK(found.at("microbatches") == 2);
  CHECK(found.at("loss").get<double>() == Catch::Approx(losses[1]).epsilon(1e-6).margin(0));
  const at::Tensor held_out = x.narrow(0, 32, 8);
  const at::Tensor error =
      at::matmul(held_out, read_weights(weights).at(0).tensor) - held_out.narrow(1, 0, 2).square();
  CHECK(losses[1] == Catch::Approx(error.square().mean().item<double>()).epsilon(1e-5).margin(0));
  Words all = trained;
  all.erase(all.begin() + 4, all.begin() + 6);
  CHECK(eval_json(all).at("samples") == 40);

  // Two of 14 samples fill no microbatch, and the last batch of the training has one microbatch.
  const Words uneven{
      "--model-file", model, "--data", data, "--held-out", "0.35", "--microbatch-size", "4"};
  const TrainOutput of_steps =
      train_output(with_more(with_more(with_more({STAGECRAFT_COMMAND, "train"}, uneven), run),
                             {"--steps", "2", "--save-weights", weights}));
  const json of_all = eval_json(with_more(uneven, {"--load-weights", weights}));
  CHECK(of_all.at("samples") == 12);
  CHECK(of_all.at("microbatches") == 3);
  CHECK(of_all.at("loss").get<double>() ==
        Catch::Approx(evaluations_of(of_steps).at(0)).epsilon(1e-6).margin(0));
  const at::Tensor last = x.narrow(0, 26, 12);
  const at::Tensor error_of_last =
      at::matmul(last, read_weights(weights).at(0).tensor) - last.narrow(1, 0, 2).square();
  CHECK(evaluations_of(of_steps).at(0) ==
        Catch::Approx(error_of_last.square().mean().item<double>()).epsilon(1e-5).margin(0));
  Words few =
      with_more(with_more(with_more({STAGECRAFT_COMMAND, "train"}, uneven), run), {"--steps", "2"});
  *std::ranges::find(few, "0.35") = "0.15";
  check_refused(run_here(few), {"2 microbatches of a step", "found 6 samples for evaluations"});
  check_refused(run_eval(with_more(uneven, {"--microbatches", "2"})),
                {"--microbatches is for models by name"});

  // Whole microbatches have the size of those for evaluations, too.
  const std::string whole = folder.path() + "/whole";
  std::filesystem::create_directory(whole);
  write_npy(whole + "/step0_mb0_arg0.npy", x.narrow(0, 0, 5));
  write_npy(whole + "/step0_mb0_arg1.npy", x.narrow(0, 0, 5).narrow(1, 0, 2));
  const Words mixed{"--model-file", model, "--data", whole, "--eval-data", data, "--stages", "1"};
  const TrainOutput other =
      train_output(with_more({STAGECRAFT_COMMAND, "train", "--eval-every", "1"}, mixed));
  CHECK(evaluations_of(other).size() == 1);
}

TEST_CASE("data for evaluations are given with the option that uses them, and fit the others",
          "[tools][train][eval][bad-input]") {
  const TemporaryFolder held_out;
  copy_last_steps("resnet", held_out.path());
  const auto refused = [](const Words& words, const Words& parts) {
    CAPTURE(words);
    check_refused(run_here(words), parts);
  };
  refused(evaluated_training("resnet", held_out.path(), {}),
          {"--eval-data expects --eval-every", "found none"});
  Words words = evaluated_training("resnet", "", {"--eval-every", "1"});
  words.erase(words.end() - 4, words.end() - 2);
  refused(
      words,
      {"--eval-every expects --eval-data DIR", "no step trains on", "--held-out", "found none"});
  refused(evaluated_training("resnet", held_out.path(), {"--eval-every", "1", "--held-out", "0.5"}),
          {"--eval-data expects no --held-out"});
  refused({STAGECRAFT_COMMAND, "train", "--eval-every", "1", "--eval-data", held_out.path()},
          {"--eval-data is an option of models from files, found --model llama"});
  refused(evaluated_training("resnet", held_out.path() + "/none", {"--eval-every", "1"}),
          {"expected a folder of data"});
  refused(evaluated_training("resnet", evaluated_data("bert"), {"--eval-every", "1"}),
          {"the data for evaluations expect"});
  for (const auto& entry : std::filesystem::directory_iterator(held_out.path())) {
    if (entry.path().filename().string().find("_mb3_") != std::string::npos) {
      std::filesystem::remove(entry.path());
    }
  }
  refused(evaluated_training("resnet", held_out.path(), {"--eval-every", "1"}),
          {held_out.path(), "the data for evaluations expect 4 microbatches in a step", "found 3"});
}

TEST_CASE("a model by name is evaluated on the batch of its run's evaluations", "[tools][eval]") {
  const TemporaryFolder folder;
  const std::string checkpoint = folder.path() + "/a.ckpt";
  const Words sizes{"--layers", "4", "--dim", "32", "--heads", "2", "--ffn", "48", "--seq", "16"};
  const Words batch{"--microbatch-size", "2", "--microbatches", "4"};
  const TrainOutput output = train_json(
      {"--stages", "2", "--steps", "2", "--eval-every", "2", "--seed", "5", "--save", checkpoint});
  const std::vector<double> losses = evaluations_of(output);
  REQUIRE(losses.size() == 1);
  const Words words = with_more(with_more(sizes, batch), {"--load", checkpoint});
  const json found = eval_json(words);  // with the seed of the checkpoint
  CHECK(found.at("model") == "llama");
  CHECK(found.at("loss").get<double>() == Catch::Approx(losses[0]).epsilon(1e-6).margin(0));
  CHECK(found.at("samples") == 8);
  CHECK(eval_json(with_more(words, {"--seed", "6"})).at("loss") != found.at("loss"));
  Words fewer = words;
  fewer.at(1) = "2";  // layers
  check_refused(run_eval(fewer),
                {checkpoint,
                 "the checkpoint is of another model: it has other parameters",
                 "give the options of the run that saved it: --model, its sizes, its data"});
  const CommandResult usual = run_eval({"--load", checkpoint});  // of the default sizes
  check_refused(usual, {"is of another model: its parameter ", " has the shape ["});
  CHECK_THAT(usual.err, !ContainsSubstring("\n  "));  // no list of all tensors
}

TEST_CASE("what eval cannot use is a message", "[tools][eval][bad-input]") {
  const std::string file = evaluated_archive("gpt2") + "/model.pt2";
  const Words gpt2 = words_of("gpt2", "model.pt2");
  check_message(run_eval({"--model-file", file}), 2, {"--model-file expects --data DIR"});
  check_message(run_eval(with_more(gpt2, {"--load", "x", "--load-weights", "y"})),
                2,
                {"--load-weights expects no --load"});
  check_message(run_eval(with_more(gpt2, {"--microbatches", "4"})),
                2,
                {"--microbatches is for models by name", "found --model-file", "leave it out"});
  check_message(run_eval(with_more(gpt2, {"--microbatch-size", "4"})),
                2,
                {"--microbatch-size is for", "shards of samples", "found whole microbatches"});
  check_message(run_eval(with_more(gpt2, {"--held-out", "0.5"})),
                2,
                {"only of shards of samples can a part be held out"});
  check_message(run_eval(with_more(gpt2, {"--lr", "1"})), 2, {"--lr"});
  check_refused(run_eval({"--model-file", file, "--data", evaluated_data("resnet")}), {file});
  check_refused(run_eval({"--model-file", file, "--data", "none"}), {"expected a folder of data"});
  check_refused(run_eval(with_more(
                    gpt2, {"--load-weights", evaluated_archive("bert") + "/final.safetensors"})),
                {"expected the weights of the model"});
  check_refused(run_eval(with_more(gpt2, {"--load", evaluated_archive("gpt2") + "/expected.json"})),
                {"expected.json"});
  const CommandResult help = run_eval({"--help"});
  CHECK_THAT(help.out, ContainsSubstring("--load-weights") && ContainsSubstring("a model by name"));
}

}  // namespace
}  // namespace stagecraft::tests
