/// Tests `stagecraft predict`: its files hold what the model returns in evaluation mode.
#include "stagecraft/tools/eval/predict.h"

#include <filesystem>
#include <map>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/compiler/tensor_files/npy.h"
#include "stagecraft/compiler/tensor_files/safetensors.h"
#include "stagecraft/compiler/tensor_files/weights.h"
#include "stagecraft/tests/compiler/import/made_script.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/common/command_run.h"
#include "stagecraft/tests/tools/common/json_shape.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using PredictWords = std::vector<std::string>;

constexpr int kSteps = 2;
constexpr int kInStep = 3;

at::Tensor weight_of_file() {
  return at::arange(6, at::kFloat).view({3, 2}).div(10);
}

at::Tensor rows_of(int step, int microbatch) {
  return at::arange(12, at::kFloat).view({4, 3}).sub(5).mul(1 + step * kInStep + microbatch);
}

/// Saves a script with the parameter w, [3, 2], unless it has none.
std::string saved_script(const TemporaryFolder& folder,
                         const std::string& name,
                         const std::string& body,
                         const std::string& arguments = "x",
                         bool has_weight = true) {
  const std::string path = folder.path() + "/" + name;
  std::vector<NamedTensor> parameters;
  if (has_weight) {
    parameters.push_back({"w", weight_of_file().requires_grad_(true)});
  }
  testing::save_script(
      path, fmt::format("def forward(self, {}):\n  return {}\n", arguments, body), parameters);
  return path;
}

/// Writes rows_of() of all microbatches, and with `targets` a second argument [4, 2].
std::string written_data(const TemporaryFolder& folder,
                         const std::string& name,
                         bool targets = false) {
  const std::string path = folder.path() + "/" + name;
  std::filesystem::create_directory(path);
  for (int k = 0; k < kSteps; ++k) {
    for (int j = 0; j < kInStep; ++j) {
      write_npy(fmt::format("{}/step{}_mb{}_arg0.npy", path, k, j), rows_of(k, j));
      if (targets) {
        write_npy(fmt::format("{}/step{}_mb{}_arg1.npy", path, k, j),
                  at::arange(8, at::kFloat).view({4, 2}));
      }
    }
  }
  return path;
}

CommandResult run_predict(const PredictWords& words) {
  return run_in_test(&tools::predict_model, words);
}

void require_predicted(const PredictWords& words) {
  const CommandResult result = run_predict(words);
  CAPTURE(words, result.out, result.err);
  REQUIRE(result.exit_code == 0);
}

std::string output_file(const std::string& folder, int step, int microbatch, int output) {
  return fmt::format("{}/step{}_mb{}_out{}.npy", folder, step, microbatch, output);
}

std::size_t files_in(const std::string& folder) {
  const std::filesystem::directory_iterator files(folder);
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

TEST_CASE("predict writes what the model returns for each microbatch, in a folder or one file",
          "[tools][predict]") {
  const TemporaryFolder folder;
  const std::string model =
      saved_script(folder, "m.pt", "(x.matmul(self.w), x.argmax(1), x.mean())");
  const std::string data = written_data(folder, "data");
  const std::string out = folder.path() + "/out", file = folder.path() + "/out.safetensors";
  require_predicted({"--model-file", model, "--data", data, "-o", out + "/"});
  require_predicted({"--model-file", model, "--data", data, "--output", file});
  CHECK(files_in(out) == kSteps * kInStep * 3);
  std::map<std::string, at::Tensor> tensors;
  for (const NamedTensor& t : read_safetensors(file)) {
    tensors.emplace(t.name, t.tensor);
  }
  CHECK(tensors.size() == kSteps * kInStep * 3);
  for (int k = 0; k < kSteps; ++k) {
    for (int j = 0; j < kInStep; ++j) {
      CAPTURE(k, j);
      const at::Tensor x = rows_of(k, j);
      const std::vector<at::Tensor> expected{
          at::matmul(x, weight_of_file()), x.argmax(1), x.mean()};
      for (int i = 0; i < 3; ++i) {
        CAPTURE(i);
        const at::Tensor& wanted = expected[static_cast<std::size_t>(i)];
        const at::Tensor found = read_npy(output_file(out, k, j, i));
        CHECK(found.sizes() == wanted.sizes());
        CHECK(found.scalar_type() == wanted.scalar_type());
        CHECK(at::equal(found, wanted));
        CHECK(at::equal(tensors.at(fmt::format("step{}_mb{}_out{}", k, j, i)), wanted));
      }
    }
  }
  // The same outputs may be written again.
  const CommandResult again =
      run_predict({"--model-file", model, "--data", data, "-o", out, "--json"});
  CAPTURE(again.err);
  REQUIRE(again.exit_code == 0);
  const json found = check_json_shape("predict", again.out).at(0);
  CHECK(found.at("microbatches") == kSteps * kInStep);
  CHECK(found.at("file") == out);
  CHECK(found.at("outputs").at(0) == json{{"type", "float32"}, {"shape", {4, 2}}});
  CHECK(found.at("outputs").at(1) == json{{"type", "int64"}, {"shape", {4}}});
  CHECK(found.at("outputs").at(2).at("shape").empty());
}

TEST_CASE("a prediction is in evaluation mode, and needs no weight", "[tools][predict]") {
  const TemporaryFolder folder;
  const std::string data = written_data(folder, "data");
  const std::string out = folder.path() + "/out", bare = folder.path() + "/bare";
  const std::string dropout =
      saved_script(folder, "d.pt", "torch.dropout(x.matmul(self.w), 0.5, True)");
  require_predicted({"--model-file", dropout, "--data", data, "-o", out});
  CHECK(
      at::equal(read_npy(output_file(out, 1, 2, 0)), at::matmul(rows_of(1, 2), weight_of_file())));
  const std::string weightless = saved_script(folder, "b.pt", "x * 2.0", "x", false);
  require_predicted({"--model-file", weightless, "--data", data, "-o", bare});
  CHECK(at::equal(read_npy(output_file(bare, 0, 1, 0)), rows_of(0, 1) * 2.0));
}

TEST_CASE("shards are predicted in the order of their samples, and the rest is reported",
          "[tools][predict]") {
  const TemporaryFolder folder;
  const std::string model = saved_script(folder, "m.pt", "x.matmul(self.w)");
  const std::string data = folder.path() + "/data", out = folder.path() + "/out";
  const std::string one = folder.path() + "/one";
  std::filesystem::create_directory(data);
  const at::Tensor x = at::arange(30, at::kFloat).view({10, 3});
  write_npy(data + "/a_arg0.npy", x.narrow(0, 0, 7));
  write_npy(data + "/b_arg0.npy", x.narrow(0, 7, 3));
  const CommandResult result =
      run_predict({"--model-file", model, "--data", data, "-o", out, "--microbatch-size", "4"});
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("left out: the last 2 samples"));
  CHECK(files_in(out) == 2);
  for (int k = 0; k < 2; ++k) {
    CHECK(at::equal(read_npy(output_file(out, k, 0, 0)),
                    at::matmul(x.narrow(0, 4 * k, 4), weight_of_file())));
  }
  require_predicted({"--model-file", model, "--data", data, "-o", one, "--microbatch-size", "1"});
  CHECK(files_in(one) == 10);
}

TEST_CASE("predict takes trained weights, in their files or in a checkpoint", "[tools][predict]") {
  const TemporaryFolder folder;
  const std::string trained =
      saved_script(folder, "loss.pt", "(x.matmul(self.w) - y).square().mean()", "x, y");
  const std::string model = saved_script(folder, "m.pt", "x.matmul(self.w)");
  const std::string data = written_data(folder, "data");
  const std::string weights = folder.path() + "/w", checkpoint = folder.path() + "/a.ckpt";
  (void)train_output({STAGECRAFT_COMMAND,
                      "train",
                      "--model-file",
                      trained,
                      "--data",
                      written_data(folder, "labeled", /*targets=*/true),
                      "--stages",
                      "1",
                      "--lr",
                      "0.1",
                      "--save-weights",
                      weights,
                      "--save",
                      checkpoint});
  const at::Tensor weight = read_weights(weights).at(0).tensor;
  REQUIRE_FALSE(at::equal(weight, weight_of_file()));
  for (const PredictWords& from :
       {PredictWords{"--load-weights", weights}, PredictWords{"--load", checkpoint}}) {
    CAPTURE(from);
    const std::string out = folder.path() + "/" + from[0];
    PredictWords words{"--model-file", model, "--data", data, "-o", out};
    words.insert(words.end(), from.begin(), from.end());
    require_predicted(words);
    CHECK(at::equal(read_npy(output_file(out, 1, 0, 0)), at::matmul(rows_of(1, 0), weight)));
  }
}

TEST_CASE("what predict cannot use is a message, and nothing is written",
          "[tools][predict][bad-input]") {
  const TemporaryFolder folder;
  const std::string archives = fmt::format("{}/tests/data/models/", STAGECRAFT_SOURCE_DIR);
  const std::string model = saved_script(folder, "m.pt", "x.matmul(self.w)");
  const std::string data = written_data(folder, "data");
  const std::string out = folder.path() + "/out";
  const auto refused = [&](const std::string& file,
                           const std::string& inputs,
                           const PredictWords& more,
                           const PredictWords& parts) {
    PredictWords words{"--model-file", file, "--data", inputs, "-o", out};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = run_predict(words);
    CAPTURE(words, result.out, result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    for (const std::string& part : parts) {
      CHECK_THAT(result.err, ContainsSubstring(part));
    }
    CHECK_FALSE(std::filesystem::exists(out));
  };
  refused(archives + "resnet/model.pt2",
          archives + "resnet",
          {},
          {"its only output is a loss", "stagecraft eval", "export a forward"});
  refused(model, folder.path() + "/none", {}, {"expected a folder of data"});
  refused(model, written_data(folder, "labeled", /*targets=*/true), {}, {model});
  refused(folder.path() + "/none.pt", data, {}, {"none.pt"});
  refused(model, data, {"--load-weights", archives + "bert"}, {archives + "bert"});
  refused(model, data, {"--load", "x", "--load-weights", "y"}, {"expects no --load"});
  refused(model, data, {"--steps", "2"}, {"--steps"});
  refused(model, data, {"--microbatch-size", "2"}, {"--microbatch-size expects shards"});
  const auto refused_out = [&](const std::string& place, const PredictWords& parts) {
    check_message(run_predict({"--model-file", model, "--data", data, "-o", place}), 2, parts);
  };
  refused_out(data, {"expected a folder without other tensors", "_arg0.npy"});
  const std::string shards = folder.path() + "/shards";
  std::filesystem::create_directory(shards);
  write_safetensors(shards + "/a.safetensors", {{"arg0", rows_of(0, 0)}});
  refused_out(shards, {"expected a folder without other tensors", "a.safetensors"});
  refused_out(data + "/out.safetensors", {"outside the folder of --data"});
  refused_out(folder.path() + "/none/out", {"--output"});
  refused_out(model, {"--output"});  // a file of another kind
  std::filesystem::create_directory(out);
  write_npy(output_file(out, kSteps, 0, 0), rows_of(0, 0));
  refused_out(out, {"step2_mb0_out0.npy", "name another folder"});
  check_message(run_predict({"--model-file", model, "--data", data}), 2, {"--output"});
  CHECK_THAT(run_predict({"--help"}).out,
             ContainsSubstring("step<k>_mb<j>_out<i>") && !ContainsSubstring("by name"));
}

}  // namespace
}  // namespace stagecraft::tests
