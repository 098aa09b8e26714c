/// Tests folders of microbatches (DF-1).
#include "stagecraft/compiler/data/microbatch_files.h"

#include <filesystem>
#include <string>

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/tensor_files/npy.h"
#include "stagecraft/tests/compiler/tensor_files/tensor_file_cases.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::same_tensor;
using tests::TemporaryFolder;

}  // namespace

TEST_CASE("a folder of microbatches is whole and of one shape", "[compiler][data]") {
  const TemporaryFolder folder;
  const auto path = [&](int step, int microbatch, int argument) {
    return fmt::format("{}/step{}_mb{}_arg{}.npy", folder.path(), step, microbatch, argument);
  };
  const auto message = [&] {
    return refusal([&] { const MicrobatchFiles data(folder.path()); }, Errc::UsageFile);
  };
  CHECK_THAT(message(),
             ContainsSubstring("step<k>_mb<j>_arg<i>.npy") && ContainsSubstring("found none"));
  for (int step = 0; step < 2; ++step) {
    for (int m = 0; m < 2; ++m) {
      write_npy(path(step, m, 0), at::full({3, 2}, 10 * step + m, at::kLong));
      write_npy(path(step, m, 1), at::full({}, 0.5 + m, at::kFloat));
    }
  }
  (void)folder.write("notes.txt", "other files may lie there");
  const MicrobatchFiles data(folder.path());
  CHECK(data.steps() == 2);
  CHECK(data.microbatches() == 2);
  CHECK(data.bytes_of_step() == 2 * (3 * 2 * 8 + 4));
  CHECK(data.arguments().at(1).sizes.empty());
  const Batch batch = data.batch(1);
  CHECK(same_tensor(batch.at(0).tensor.select(1, 0),
                    at::tensor({10, 10, 10, 11, 11, 11}, at::kLong)));
  CHECK(same_tensor(batch.at(1).tensor, at::tensor({0.5, 1.5}, at::kFloat)));

  SECTION("a file is missing") {
    std::filesystem::remove(path(0, 1, 0));
    CHECK_THAT(message(), ContainsSubstring("step0_mb1_arg0.npy: missing"));
  }
  SECTION("the last file is missing") {
    std::filesystem::remove(path(1, 1, 1));
    CHECK_THAT(message(), ContainsSubstring("step1_mb1_arg1.npy: missing"));
  }
  SECTION("a step is missing, far away from the others") {
    write_npy(path(2147483647, 0, 0), at::zeros({1}));
    CHECK_THAT(message(), ContainsSubstring("step2_mb0_arg0.npy: missing"));
  }
  SECTION("a number has zeros in front") {
    (void)folder.write("step01_mb0_arg0.npy", "");
    CHECK_THAT(message(), ContainsSubstring("step01_mb0_arg0.npy: expected a name like"));
  }
  SECTION("a microbatch is of another shape") {
    write_npy(path(1, 0, 0), at::zeros({2, 2}, at::kLong));
    CHECK_THAT(message(),
               ContainsSubstring("step1_mb0_arg0.npy: expected int64 [3, 2]") &&
                   ContainsSubstring("found int64 [2, 2]"));
  }
  SECTION("a microbatch is of another type") {
    write_npy(path(1, 0, 1), at::zeros({}, at::kDouble));
    CHECK_THAT(message(), ContainsSubstring("found float64 []"));
  }
  SECTION("a file changes while it is used") {
    write_npy(path(1, 0, 0), at::zeros({3, 2}));
    CHECK_THAT(refusal([&] { (void)data.batch(1); }, Errc::UsageFile),
               ContainsSubstring("as when the run began"));
  }
  CHECK_THAT(refusal([&] { const MicrobatchFiles none(folder.path() + "/none"); }, Errc::UsageFile),
             ContainsSubstring("expected a folder of data"));
}

}  // namespace stagecraft
