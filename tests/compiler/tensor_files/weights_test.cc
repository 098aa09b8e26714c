/// Tests weights in files and folders: all of them are taken over, or none (WE-1).
#include "stagecraft/compiler/tensor_files/weights.h"

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/compiler/tensor_files/tensor_file_cases.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::counted;
using testing::same_tensor;
using tests::TemporaryFolder;

}  // namespace

TEST_CASE("weights are taken over whole or not at all", "[compiler][tensor_files][weights]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/" + GENERATE("a", "a.safetensors");
  const at::Tensor tied = counted(at::kFloat, {2, 3});
  const at::Tensor half = counted(at::kFloat, {4}).to(at::kBFloat16);
  const at::Tensor count = at::full({}, 7, at::kLong);
  const auto names = [](const std::vector<at::Tensor>& t) {
    return std::vector<NamedTensor>{{"embed.weight", t[0]}, {"norm", t[1]}, {"head.weight", t[0]}};
  };
  std::vector<NamedTensor> saved = names({tied, half});
  saved.push_back({"count", count});
  write_weights(file, saved);
  write_weights(file, saved);  // overwrites its own file
  const at::Tensor first = at::zeros({2, 3});
  const at::Tensor second = at::zeros({4}, at::kBFloat16);
  const at::Tensor third = at::zeros({}, at::kLong);
  load_weights(file, read_weights(file), names({first, second}), {{"count", third}});
  CHECK(same_tensor(first, tied));
  CHECK(same_tensor(second, half));
  CHECK(same_tensor(third, count));

  // A buffer may be missing, and one name of a tie is enough.
  const at::Tensor again = at::zeros({2, 3});
  load_weights(
      "f", {{"head.weight", tied}, {"norm", half}}, names({again, second}), {{"x", third}});
  CHECK(same_tensor(again, tied));

  const at::Tensor untouched = at::zeros({2, 3});
  const std::string message = refusal(
      [&] {
        load_weights("f",
                     {{"embed.weight", counted(at::kFloat, {2, 3})},
                      {"head.weight", counted(at::kFloat, {2, 3}).add(1)},
                      {"count", counted(at::kInt, {2})},
                      {"stranger", tied}},
                     names({untouched, second}),
                     {{"count", third}});
      },
      Errc::UsageFile);
  for (const char* part : {"f: expected the weights of the model, found 4 tensors that do not fit",
                           "head.weight: differs from embed.weight",
                           "norm: missing",
                           "count: expected int64 [], found int32 [2]",
                           "stranger: the model has none of this name"}) {
    CHECK_THAT(message, ContainsSubstring(part));
  }
  CHECK(untouched.eq(0).all().item().toBool());
}

TEST_CASE("float32 beyond the range of float16 is refused, and infinity is taken",
          "[compiler][tensor_files][weights][bad-input]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const at::Tensor half = at::zeros({2}, at::kHalf);
  const auto load = [&](float number) {
    load_weights("f", {{"w", at::full({2}, number, at::kFloat)}}, {{"w", half}}, {});
  };
  for (const float large : {7e4F, -7e4F}) {
    CHECK_THAT(refusal([&] { load(large); }, Errc::UsageFile),
               ContainsSubstring("w: expected numbers that float16 can hold (up to 65504), found "
                                 "larger ones"));
    CHECK(half.eq(0).all().item().toBool());  // WE-1
  }
  for (const float held : {65504.0F, -65504.0F, kInfinity, -kInfinity}) {
    load(held);
    CHECK(same_tensor(half, at::full({2}, held, at::kHalf)));
  }
  const at::Tensor wide = at::zeros({2}, at::kBFloat16);
  load_weights("f", {{"w", at::full({2}, 7e4F, at::kFloat)}}, {{"w", wide}}, {});
  CHECK(same_tensor(wide, at::full({2}, 7e4F, at::kBFloat16)));
}

TEST_CASE("a folder for weights has no weights of another model",
          "[compiler][tensor_files][weights]") {
  const TemporaryFolder folder;
  (void)folder.write("other.weight.npy", "");
  (void)folder.write("notes.txt", "");
  CHECK_THAT(refusal(
                 [&] {
                   write_weights(folder.path(), {{"a", at::zeros({1})}});
                 },
                 Errc::UsageFile),
             ContainsSubstring("'other.weight.npy'; name another folder"));
  for (const std::string& name :
       std::vector<std::string>{"../a", "", ".a", std::string(300, 'a')}) {
    CHECK_THAT(refusal(
                   [&] {
                     write_weights(folder.path() + "/b", {{name, at::zeros({1})}});
                   },
                   Errc::UsageFile),
               ContainsSubstring("NAME.safetensors"));
  }
  CHECK(!std::filesystem::exists(folder.path() + "/b"));
  CHECK_THAT(refusal([&] { (void)read_weights(folder.path() + "/b"); }, Errc::UsageFile),
             ContainsSubstring("a folder of .npy files"));
  const TemporaryFolder empty;
  CHECK_THAT(refusal([&] { (void)read_weights(empty.path()); }, Errc::UsageFile),
             ContainsSubstring("found none"));
}

}  // namespace stagecraft
