/// Tests models from files at the command line: compares the output of `stagecraft import` and of
/// `stagecraft train --model-file` with PyTorch's results (tests/data/models).

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/compiler/import/load_model.h"
#include "stagecraft/compiler/tensor_files/npy.h"
#include "stagecraft/compiler/tensor_files/safetensors.h"
#include "stagecraft/compiler/tensor_files/weights.h"
#include "stagecraft/tests/compiler/import/made_archive.h"
#include "stagecraft/tests/compiler/import/trained_tensors.h"
#include "stagecraft/tests/compiler/import/unpacked_inputs.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/own_cache.h"
#include "stagecraft/tests/tools/common/command_run.h"
#include "stagecraft/tests/tools/common/runtime_run.h"
#include "stagecraft/tests/tools/train/run/train_run.h"
#include "stagecraft/tools/import/import.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

constexpr double kTolerance = 1e-5;

std::string archive(const std::string& name, const std::string& file = "") {
  return fmt::format(
      "{}/tests/data/models/{}{}", STAGECRAFT_SOURCE_DIR, name, file.empty() ? "" : "/" + file);
}

/// Returns the folder with the inputs of a model.
std::string inputs_of(const std::string& name) {
  return testing::unpacked_inputs(archive(name));
}

CommandResult import_words(const std::vector<std::string>& words) {
  return run_in_test(&tools::import_model, words);
}

json import_json(std::vector<std::string> words, int exit_code = 0) {
  words.emplace_back("--json");
  const CommandResult result = import_words(words);
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == exit_code);
  return json::parse(result.out);
}

/// Returns the words of `stagecraft train` on an archive, with PyTorch's learning rate.
std::vector<std::string> training(const std::string& name,
                                  const std::string& file,
                                  const std::vector<std::string>& more) {
  const json expected = json::parse(read_text_file(archive(name, "expected.json")));
  std::vector<std::string> words{STAGECRAFT_COMMAND,
                                 "train",
                                 "--model-file",
                                 archive(name, file),
                                 "--data",
                                 inputs_of(name),
                                 "--optimizer",
                                 "sgd",
                                 "--lr",
                                 fmt::format("{}", expected.at("lr").get<double>())};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Compares every final tensor of PyTorch with those that `train` saved.
void check_final_weights(const std::string& name,
                         const std::string& file,
                         const std::string& saved) {
  std::map<std::string, at::Tensor> found;
  for (const NamedTensor& t : read_weights(saved)) {
    found.emplace(t.name, t.tensor);
  }
  const testing::TrainedTensors reference(load_model(archive(name, file)).parameters,
                                          read_safetensors(archive(name, "final.safetensors")));
  for (std::size_t i = 0; i < reference.expected().size(); ++i) {
    const NamedTensor& t = reference.expected()[i];
    CAPTURE(t.name);
    REQUIRE(found.contains(t.name));
    CHECK(found.at(t.name).scalar_type() == t.tensor.scalar_type());
    CHECK(reference.distance(i, found.at(t.name)) <= 1.0);
  }
}

/// Copies the steps from `from` to the last of an archive's data, into a folder that begins at 0.
void copy_data(const std::string& name, int from, const std::string& to) {
  for (const auto& entry : std::filesystem::directory_iterator(inputs_of(name))) {
    const std::string file = entry.path().filename().string();
    if (file.starts_with("step") && file[4] - '0' >= from) {
      std::filesystem::copy_file(
          entry.path(), fmt::format("{}/step{}{}", to, file[4] - '0' - from, file.substr(5)));
    }
  }
}

}  // namespace

TEST_CASE("a plan for a model from a file keeps the microbatches of its data, and says so",
          "[tools][train][plan]") {
  const OwnCache cache;
  for (const char* file : {"model.pt2", "model.pt"}) {
    CAPTURE(file);
    const CommandResult result = run_here(
        training("gpt2", file, {"--plan", "capslog", "--ranks", "2", "--steps", "1", "--verify"}));
    CAPTURE(result.out, result.err);
    CHECK(result.exit_code == 0);
    CHECK_THAT(result.err,
               ContainsSubstring("plan: note: microbatches stay as they are, 4 a step"));
    CHECK_THAT(result.out, ContainsSubstring("planned: 4 microbatches of "));
  }
}

TEST_CASE("import says what is in a file, of both kinds", "[tools][import]") {
  const json exported = import_json({archive("gpt2", "model.pt2")});
  CHECK(exported.at("kind") == "torch.export");
  CHECK(exported.at("mode") == "training");
  CHECK(exported.at("parameters").size() == 28);  // a tie counts once
  CHECK(exported.at("parameter_bytes") == 4 * 2976);
  int ties = 0;
  for (const json& parameter : exported.at("parameters")) {
    ties += static_cast<int>(parameter.value("ties", json::array()).size());
    CHECK(parameter.at("type") == "float32");
  }
  CHECK(ties == 1);
  CHECK(std::ranges::count(exported.at("operators"), json{{"name", "aten::addmm"}, {"times", 8}}) ==
        1);
  CHECK(exported.at("unsupported").empty());
  CHECK(exported.at("inputs").at(0).at("type") == "int64");
  CHECK(exported.at("inputs").at(0).at("shape").size() == 2);
  CHECK(exported.at("outputs").at(0).at("shape").empty());
  CHECK(exported.at("ran") == false);

  const json script = import_json({archive("gpt2", "model.pt"), "--inputs", inputs_of("gpt2")});
  CHECK(script.at("kind") == "TorchScript");
  CHECK(script.at("parameters").size() == 28);
  CHECK(script.at("ran") == true);
  CHECK(script.at("inputs").at(0).at("shape") == exported.at("inputs").at(0).at("shape"));

  const CommandResult people = import_words({archive("resnet", "model.pt2")});
  CHECK(people.exit_code == 0);
  for (const char* part : {"torch.export",
                           "training: dropout is active",
                           "an evaluation turns dropout off",
                           "inputs",
                           "38 parameters",
                           "running_mean",
                           "operators:",
                           "aten::conv2d",
                           "--inputs DIR"}) {
    CHECK_THAT(people.out, ContainsSubstring(part));
  }
}

TEST_CASE("import proposes a cut, on zeros or on data, and writes it", "[tools][import]") {
  const TemporaryFolder folder;
  const std::string cut = folder.path() + "/a.cut", costs = folder.path() + "/costs.json";
  const json exported = import_json(
      {archive("resnet", "model.pt2"), "--stages", "2", "--cut-out", cut, "--costs-out", costs});
  CHECK(exported.at("measured_on") == "zeros");
  REQUIRE(exported.at("cut").size() == 2);
  double bytes = 0;
  for (const json& stage : exported.at("cut")) {
    CHECK(stage.at("seconds").get<double>() > 0.0);
    bytes += stage.at("parameter_bytes").get<double>();
  }
  CHECK(bytes == exported.at("parameter_bytes"));
  CHECK(exported.at("cut").at(0).at("crossing_bytes").get<double>() > 0.0);
  CHECK_THAT(read_text_file(cut), ContainsSubstring("op:"));
  const json measured = json::parse(read_text_file(costs));
  CHECK(measured.at("operators").size() > 10);
  CHECK(measured.at("stages").at("each").size() == 2);
  // The cut is read back by this command and by a run.
  CHECK(import_json({archive("resnet", "model.pt2"), "--cut", "@" + cut})
            .at("cut")
            .at(1)
            .at("first_operator") == exported.at("cut").at(1).at("first_operator"));
  const TrainOutput trained = train_output(training(
      "resnet", "model.pt2", {"--cut", "@" + cut, "--steps", "1", "--cut-out", cut + "2"}));
  CHECK(trained.others.at(0).at("stages").size() == 2);
  CHECK(read_text_file(cut + "2") == read_text_file(cut));
  CHECK(import_json({archive("gpt2", "model.pt"), "--stages", "1", "--inputs", inputs_of("gpt2")})
            .at("measured_on") == "inputs");
  check_message(import_words({archive("gpt2", "model.pt"), "--stages", "2"}),
                2,
                {"does not state the shape of its input", "--inputs DIR"});
  check_message(import_words({archive("gpt2", "model.pt"), "--inputs", archive("llama", "none")}),
                2,
                {"expected a folder of data"});
  check_message(import_words({archive("gpt2", "model.pt"), "--stages", "2", "--cut", "h.1"}),
                2,
                {"--stages expects no --cut"});
}

TEST_CASE("import tells everything that is not supported, and ends with 1", "[tools][import]") {
  testing::MadeArchive made = testing::small_archive();
  for (const std::string name : {"nms", "warp"}) {
    made.add(testing::node(name,
                           "torch.ops.other." + name + ".default",
                           {{"dets", testing::tensor_argument("x")}},
                           {testing::tensor_argument(name)}));
  }
  const TemporaryFolder folder;
  const std::string file = folder.write("made.pt2", made.bytes());
  const json told = import_json({file, "--stages", "2"}, 1);
  REQUIRE(told.at("unsupported").size() == 2);
  CHECK(told.at("unsupported").at(0).at("node") == "nms");
  CHECK(told.at("unsupported").at(1).at("node") == "warp");
  const CommandResult people = import_words({file});
  CHECK(people.exit_code == 1);
  for (const char* part : {"not supported, 2 things", "node nms", "node warp", "parameters"}) {
    CHECK_THAT(people.out, ContainsSubstring(part));
  }
  // The content that a TorchScript file hides is seen when it runs.
  const json script =
      import_json({archive("data_sized", "model.pt"), "--inputs", inputs_of("data_sized")}, 1);
  REQUIRE(script.at("unsupported").size() == 1);
  CHECK_THAT(script.at("unsupported").at(0).at("why").get<std::string>(),
             ContainsSubstring("aten::"));
}

TEST_CASE("what is no model, or a broken one, is a message", "[tools][import][hostile]") {
  const TemporaryFolder folder;
  const std::string whole = read_text_file(archive("named", "model.pt2"));
  check_message(import_words({folder.path() + "/none.pt2"}), 2, {"none.pt2"});
  check_message(import_words({folder.path()}), 2, {folder.path()});
  check_message(import_words({folder.write("a.pt2", "a text")}), 2, {"a.pt2"});
  check_message(
      import_words({folder.write("b.pt2", whole.substr(0, whole.size() / 2))}), 2, {"b.pt2"});
  check_message(import_words({}), 2, {"MODEL"});
  check_message(import_words({archive("named", "model.pt2"), "--stagse", "2"}),
                2,
                {"did you mean --stages?"});
}

TEST_CASE("a model from a file trains as in PyTorch, bit-equal to one process",
          "[tools][train][model-file]") {
  using Row = std::array<std::string, 3>;
  const auto [name, file, stages] =
      GENERATE(Row{"resnet", "model.pt2", "3"},
               Row{"resnet", "model.pt", "2"},
               Row{"unet", "model.pt2", "2"},
               Row{"gpt2", "model.pt2", "3"},
               Row{"gpt2", "model.pt", "2"},
               Row{"t5", "model.pt", "3"},  // a parameter that no operator uses
               Row{"named", "model.pt", "1"});
  CAPTURE(name, file, stages);
  const TemporaryFolder folder;
  const std::string saved = folder.path() + "/" + (stages == "2" ? "w" : "w.safetensors");
  const TrainOutput output =
      train_output(training(name, file, {"--stages", stages, "--verify", "--save-weights", saved}));
  CHECK(output.verify.at("bit_equal") == true);
  CHECK(output.verify.at("losses") == 5);
  const json expected = json::parse(read_text_file(archive(name, "expected.json")));
  REQUIRE(output.steps.size() == 5);
  for (std::size_t k = 0; k < 5; ++k) {
    CHECK(output.steps[k].at("loss").get<double>() ==
          Catch::Approx(expected.at("losses").at(k).get<double>()).epsilon(kTolerance).margin(0));
    CHECK_FALSE(output.steps[k].contains("tokens"));
  }
  REQUIRE(output.others.at(0).at("event") == "cut");
  CHECK(output.others.at(0).at("stages").size() == std::stoul(stages));
  CHECK(output.done.at("steps_per_second").get<double>() > 0.0);
  CHECK(output.done.at("weights_sha256").get<std::string>().size() == 64);
  check_final_weights(name, file, saved);
}

TEST_CASE("a token that is too large is told with its file",
          "[tools][train][model-file][bad-input]") {
  const auto [bad, parts] = GENERATE(table<std::string, std::vector<std::string>>({
      {"step1_mb2_arg0.npy", {"step 2 failed: ", "out of range", "negative in ", "microbatch 2"}},
      {"step0_mb0_arg0.npy", {"out of range", "negative in the first step of "}},
  }));
  const std::string file = GENERATE("model.pt2", "model.pt");
  CAPTURE(bad, file);
  const TemporaryFolder folder;
  copy_data("bert", 0, folder.path());
  const std::string path = folder.path() + "/" + bad;
  at::Tensor tokens = read_npy(path);
  tokens.mutable_data_ptr<std::int64_t>()[3] = 99'999;
  write_npy(path, tokens);
  std::vector<std::string> words = training("bert", file, {"--stages", "2"});
  *std::ranges::find(words, inputs_of("bert")) = folder.path();
  const CommandResult result = run_here(words);
  CAPTURE(result.err);
  CHECK(result.exit_code == 1);
  for (const std::string& part : parts) {
    CHECK_THAT(result.err, ContainsSubstring(part));
  }
  CHECK_THAT(result.err, ContainsSubstring(bad.starts_with("step0") ? folder.path() : path));
}

TEST_CASE("weights that were saved begin the next run, with their buffers",
          "[tools][train][model-file][weights]") {
  const std::string file = GENERATE("model.pt2", "model.pt");
  const std::string name = "resnet";
  const TemporaryFolder folder, rest;
  copy_data(name, 3, rest.path());
  const std::string saved = folder.path() + "/" + (file == "model.pt" ? "w" : "w.safetensors");
  const std::string one = train_output(training(name, file, {"--stages", "1"})).sha256();
  const TrainOutput half = train_output(
      training(name, file, {"--stages", "1", "--steps", "3", "--save-weights", saved}));
  REQUIRE(half.steps.size() == 3);
  CHECK(half.others.at(0).at("event") == "cut");
  CHECK(half.others.at(1) == json{{"event", "saved_weights"}, {"step", 3}, {"file", saved}});
  std::vector<std::string> words = training(
      name, file, {"--stages", "1", "--load-weights", saved, "--save-weights", saved, "--verify"});
  *std::ranges::find(words, inputs_of(name)) = rest.path();
  const TrainOutput second = train_output(words);
  CHECK(second.steps.size() == 2);
  CHECK(second.sha256() == one);
  CHECK(second.verify.at("bit_equal") == true);
  check_final_weights(name, file, saved);
}

TEST_CASE("a run that passes the end of its data reads them again in another order",
          "[tools][train][model-file]") {
  const TemporaryFolder folder;
  const std::string saved = folder.path() + "/a.ckpt";
  const auto run = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--stages", "2"});
    return train_output(training("resnet", "model.pt2", more));
  };
  const TrainOutput whole = run({"--steps", "12", "--verify"});  // the data have 5
  CHECK(whole.steps.size() == 12);
  CHECK(whole.verify.at("bit_equal") == true);
  (void)run({"--steps", "7", "--save", saved});
  CHECK(run({"--steps", "12", "--load", saved}).sha256() == whole.sha256());
  CHECK(run({"--steps", "12", "--read-on-workers"}).sha256() == whole.sha256());
  CHECK(run({"--steps", "2", "--accumulate", "6"}).steps.size() == 2);
  CHECK(run({"--accumulate", "6"}).steps.size() == 1);
}

TEST_CASE("a rate falls by epoch, also in a run that continues in the middle of one",
          "[tools][train][model-file]") {
  const TemporaryFolder folder;
  const std::string saved = folder.path() + "/a.ckpt";
  const auto run = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--stages", "2", "--lr-schedule", "epoch", "--lr-factor", "0.5"});
    return train_output(training("resnet", "model.pt2", more));
  };
  const TrainOutput whole = run({"--steps", "12", "--verify"});  // the data have 5
  CHECK(whole.verify.at("bit_equal") == true);
  const double rate = whole.steps.at(0).at("learning_rate");
  for (std::size_t step = 0; step < 12; ++step) {
    CHECK(whole.steps[step].at("learning_rate") ==
          rate * std::pow(0.5, static_cast<double>(step / 5)));
  }
  (void)run({"--steps", "7", "--save", saved});
  CHECK(run({"--steps", "12", "--load", saved}).sha256() == whole.sha256());
  // An update has the rate of its first batch.
  const TrainOutput two = run({"--steps", "4", "--accumulate", "3", "--lr-epochs", "2"});
  CHECK(two.steps.at(3).at("learning_rate") == rate);
  const TrainOutput third = run({"--steps", "5", "--accumulate", "3", "--lr-epochs", "2"});
  CHECK(third.steps.at(4).at("learning_rate") == rate * 0.5);
}

TEST_CASE("the text's job takes and gives weights, too", "[tools][train][weights]") {
  const TemporaryFolder folder;
  const std::string saved = folder.path() + "/w";
  const std::string trained =
      train_json({"--stages", "2", "--save-weights", saved, "--steps", "2"}).sha256();
  CHECK(std::filesystem::exists(saved + "/head.weight.npy"));
  // The updates are too small to change a weight, so the final weights are the loaded ones.
  const auto next = [&](const std::string& from) {
    return run_train({"--stages",
                      "1",
                      "--steps",
                      "1",
                      "--optimizer",
                      "sgd",
                      "--lr",
                      "1e-300",
                      "--load-weights",
                      from});
  };
  CHECK_THAT(next(saved).out, ContainsSubstring(trained));
  std::filesystem::remove(saved + "/head.weight.npy");
  std::filesystem::copy_file(saved + "/norm.weight.npy", saved + "/other.npy");
  const CommandResult wrong = next(saved);
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err,
             ContainsSubstring("head.weight: missing") &&
                 ContainsSubstring("other: the model has none of this name"));
}

TEST_CASE("a dry run knows what a model from a file takes", "[tools][train][model-file][memory]") {
  const CommandResult result =
      run_here(training("resnet", "model.pt2", {"--stages", "1", "--dry-run", "--json"}));
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
  const json dry = json::parse(result.out);
  CHECK(dry.at("microbatches") == 4);
  std::map<std::string, double> bytes;
  for (const json& line : dry.at("memory").at("lines")) {
    bytes[line.at("what")] = line.at("bytes");
  }
  CHECK(bytes.at("weights of the model") == 4 * 2217);
  CHECK(bytes.at("buffers of the model") > 0);
  CHECK(bytes.at("contents of the model file") > 4 * 2217);
  const double on_ranks = bytes.at("weights, gradients, 0 optimizer states of all ranks");
  const auto parameters = dry.at("stages").at(0).at("parameters").get<double>();
  CHECK(on_ranks >= 2 * 4 * 2217);
  CHECK(on_ranks < 2 * (4 * 2217 + 64 * parameters));  // a tensor begins at a multiple of 64 bytes
  CHECK(bytes.at("activations of one microbatch, in the module and in its replay") > 4096);
  CHECK(bytes.at("activations of all ranks") > 4096);
}

TEST_CASE("what does not fit a model from a file is wrong usage, by name",
          "[tools][train][model-file][bad-input]") {
  const auto refused = [](const std::vector<std::string>& words,
                          const std::vector<std::string>& parts) {
    const CommandResult result = run_here(words);
    CAPTURE(words, result.out, result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.err.starts_with("stagecraft: "));
    for (const std::string& part : parts) {
      CHECK_THAT(result.err, ContainsSubstring(part));
    }
  };
  const auto with = [](const std::vector<std::string>& more) {
    return training("resnet", "model.pt2", more);
  };
  refused({STAGECRAFT_COMMAND, "train", "--cut", "x"}, {"no operator uses a parameter"});
  refused({STAGECRAFT_COMMAND, "train", "--plan", "auto", "--cut", "x"}, {"--plan decides --cut"});
  for (const char* option : {"--text", "--layers", "--dim", "--microbatch-sizes"}) {
    refused(with({option, "2"}), {option, "of the models that have a name"});
  }
  refused(with({"--load", "x", "--load-weights", "y"}), {"--load-weights expects no --load"});
  refused(with({"--warmup", "6"}), {"--warmup expects at most 5, as many steps as", "found 6"});
  refused(with({"--warmup", "8", "--steps", "7"}), {"--warmup expects at most --steps 7, found 8"});
  refused(with({"--lr-schedule", "wsd", "--decay-steps", "6"}),
          {"--decay-steps expects at most 5 steps, found 6"});
  refused(with({"--microbatches", "8"}), {"--microbatches expects 4", "found 8"});
  refused(with({"--microbatch-size", "2"}), {"--microbatch-size expects shards of samples"});
  refused(with({"--held-out", "0.5"}), {"only of shards of samples can a part be held out"});
  refused({STAGECRAFT_COMMAND, "train", "--held-out", "0.5"}, {"--held-out expects --model-file"});
  refused(with({"--cut", "layer1,layer2", "--stages", "2"}), {"--stages expects 3", "found 2"});
  refused(with({"--cut", "layer1,,layer2"}), {"expects places", "layer1,,layer2"});
  refused(with({"--cut", "@none.cut"}), {"readable file", "none.cut"});
  const TemporaryFolder folder;
  const std::string foreign =
      folder.write("other.cut", "@operators 3 00000000000000ab\nop:0\nop:4\n");
  refused(with({"--cut", "@" + foreign}),
          {foreign + " was written for another model, with 3 operators", "--cut-out"});
  refused(with({"--save-weights", "none/w"}), {"--save-weights", "none/w"});
  refused(with({"--save-weights", archive("resnet")}), {"--save-weights", "of another model"});
  refused(with({"--stages", "1", "--load-weights", archive("gpt2", "final.safetensors")}),
          {"expected the weights of the model", "missing"});
  std::vector<std::string> words = with({});
  words[3] = archive("gpt2", "model.pt2");
  refused(words, {"expected", "takes them", "found"});
  words = training("vit", "model.pt2", {});
  words[5] = inputs_of("unet");
  refused(words, {"do not fit", "step0_mb0_arg0.npy: expected"});
  words[5] = archive("none");
  refused(words, {"expected a folder of data"});
}

}  // namespace stagecraft::tests
