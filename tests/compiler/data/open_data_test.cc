/// Tests which data a folder holds, and every folder of shards that must be refused.
#include "stagecraft/compiler/data/open_data.h"

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/compiler/tensor_files/npy.h"
#include "stagecraft/compiler/tensor_files/safetensors.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using tests::read_text_file;
using tests::TemporaryFolder;

std::string refused_data(const TemporaryFolder& folder, const DataRequest& request) {
  return refusal([&] { (void)open_data(folder.path(), request); }, Errc::UsageFile);
}

std::string refused_data(const TemporaryFolder& folder) {
  return refused_data(folder, {.microbatch_size = 1});
}

}  // namespace

TEST_CASE("the names in a folder decide which data it holds", "[compiler][data]") {
  const TemporaryFolder steps, shards;
  write_npy(steps.path() + "/step0_mb0_arg0.npy", at::zeros({2}));
  write_safetensors(steps.path() + "/final.safetensors", {{"w", at::zeros({1})}});  // left out
  write_npy(shards.path() + "/a.npy", at::zeros({2}));
  (void)shards.write(".hidden.bin", "");
  std::filesystem::create_directory(shards.path() + "/folder.safetensors");
  CHECK(open_data(steps.path(), {.microbatches = 5})->microbatches() == 1);
  CHECK_FALSE(open_data(steps.path(), {})->samples());
  CHECK(open_data(shards.path(), {.microbatch_size = 1})->samples() == 2);

  CHECK_THAT(refused_data(steps, {.held_out = 0.5}), ContainsSubstring("found whole microbatches"));
  CHECK_THAT(refused_data(steps, {.part = DataPart::HeldOut}),
             ContainsSubstring("found whole microbatches"));
  write_npy(steps.path() + "/a_arg0.npy", at::zeros({2}));
  CHECK_THAT(refused_data(steps),
             ContainsSubstring("<shard>.safetensors") &&
                 ContainsSubstring("found step0_mb0_arg0.npy and a_arg0.npy"));
  (void)shards.write("a.bin", "");
  CHECK_THAT(refused_data(shards), ContainsSubstring("found a.npy, a.bin"));
  const TemporaryFolder none;
  (void)none.write("notes.txt", "");
  CHECK_THAT(refused_data(none),
             ContainsSubstring("step<k>_mb<j>_arg<i>.npy") && ContainsSubstring("found none"));
  CHECK_THAT(refusal([&] { (void)open_data(none.path() + "/none", {}); }, Errc::UsageFile),
             ContainsSubstring("expected a folder of data, found none"));
}

TEST_CASE("shards of .npy files that are no samples are refused with the reason",
          "[compiler][data][shards][hostile]") {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return folder.path() + "/" + name; };
  write_npy(path("a_arg0.npy"), at::zeros({4, 3}));
  write_npy(path("a_arg1.npy"), at::zeros({4}, at::kLong));

  SECTION("a number with zeros in front") {
    (void)folder.write("b_arg01.npy", "");
    CHECK_THAT(refused_data(folder), ContainsSubstring("b_arg01.npy: expected a name like"));
  }
  SECTION("a number that no integer has") {
    (void)folder.write("b_arg99999999999.npy", "");
    CHECK_THAT(refused_data(folder), ContainsSubstring("expected a name like"));
  }
  SECTION("an argument that is missing") {
    write_npy(path("a_arg3.npy"), at::zeros({4}));
    CHECK_THAT(refused_data(folder), ContainsSubstring("a_arg2.npy: missing, although a_arg3.npy"));
  }
  SECTION("an argument that comes twice") {
    write_npy(path("a.npy"), at::zeros({4, 3}));
    CHECK_THAT(refused_data(folder),
               ContainsSubstring("one file of argument 0 of shard a, found a.npy too"));
  }
  SECTION("other rows than argument 0") {
    write_npy(path("a_arg1.npy"), at::zeros({5}, at::kLong));
    CHECK_THAT(refused_data(folder),
               ContainsSubstring("a_arg1.npy: expected 4 rows") &&
                   ContainsSubstring("a_arg0.npy has them, found 5 rows"));
  }
  SECTION("a shard with fewer arguments") {
    write_npy(path("b_arg0.npy"), at::zeros({4, 3}));
    CHECK_THAT(refused_data(folder),
               ContainsSubstring("b_arg0.npy: expected 2 arguments") &&
                   ContainsSubstring("found 1; all shards are alike"));
  }
  SECTION("HS-1: a shard of another shape") {
    write_npy(path("b_arg0.npy"), at::zeros({4, 2}));
    write_npy(path("b_arg1.npy"), at::zeros({4}, at::kLong));
    CHECK_THAT(refused_data(folder),
               ContainsSubstring("b_arg0.npy: expected rows of float32 [3]") &&
                   ContainsSubstring("found rows of float32 [2]"));
  }
  SECTION("HS-1: a shard of another type") {
    write_npy(path("b_arg0.npy"), at::zeros({4, 3}));
    write_npy(path("b_arg1.npy"), at::zeros({4}, at::kInt));
    CHECK_THAT(refused_data(folder),
               ContainsSubstring("b_arg1.npy: expected rows of int64 []") &&
                   ContainsSubstring("found rows of int32 []"));
  }
  SECTION("a number without dimensions") {
    write_npy(path("a_arg0.npy"), at::full({}, 1.0));
    CHECK_THAT(refused_data(folder), ContainsSubstring("a number without dimensions"));
  }
  SECTION("rows without bytes, as many as there may be") {
    std::string bytes = read_text_file(path("a_arg1.npy"));
    const std::size_t at = bytes.find("(4,)");
    bytes.replace(at, 26, "(900000000000000000, 0), }");
    (void)folder.write("a_arg1.npy", bytes.substr(0, bytes.size() - 32));
    CHECK_THAT(refused_data(folder), ContainsSubstring("samples of at least one number"));
  }
  SECTION("columns first") {
    std::string bytes = read_text_file(path("a_arg0.npy"));
    bytes.replace(bytes.find("False"), 5, "True ");
    (void)folder.write("a_arg0.npy", bytes);
    CHECK_THAT(refused_data(folder), ContainsSubstring("numpy.ascontiguousarray"));
  }
  SECTION("a file that is shorter than it says") {
    std::filesystem::resize_file(path("a_arg0.npy"), 140);
    CHECK_THAT(refused_data(folder), ContainsSubstring("a_arg0.npy: expected 48 bytes"));
  }
  SECTION("no samples at all") {
    std::filesystem::remove(path("a_arg1.npy"));
    write_npy(path("a_arg0.npy"), at::zeros({0, 3}));
    CHECK_THAT(refused_data(folder), ContainsSubstring("found 0 samples"));
  }
}

TEST_CASE("shards of .safetensors files that are no samples are refused with the reason",
          "[compiler][data][shards][hostile]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.safetensors";
  const DataRequest request{.inputs = {{.name = "x"}, {.name = "y"}}, .microbatch_size = 1};
  const auto refused = [&](const std::vector<NamedTensor>& tensors) {
    write_safetensors(path, tensors);
    return refused_data(folder, request);
  };
  const at::Tensor rows = at::zeros({4, 3});
  CHECK_THAT(refused({{"x", rows}, {"z", rows}}),
             ContainsSubstring("arg0, arg1, ... alone, or those of the model's inputs, x, y, found "
                               "x, z"));
  CHECK_THAT(refused({{"arg0", rows}, {"arg2", rows}}), ContainsSubstring("found arg0, arg2"));
  CHECK_THAT(refused({{"arg0", rows}, {"other", rows}}), ContainsSubstring("found arg0, other"));
  CHECK_THAT(refused({}), ContainsSubstring("found none"));
  CHECK_THAT(refused({{"x", rows}, {"y", at::zeros({3})}}),
             ContainsSubstring("a.safetensors, \"y\": expected 4 rows"));
  CHECK_THAT(refused({{"x", at::full({}, 1.0)}, {"y", rows}}),
             ContainsSubstring("\"x\": expected samples, one in each row"));
  write_safetensors(path, {{"x", rows}, {"y", rows}});
  CHECK(open_data(folder.path(), request)->samples() == 4);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  CHECK_THAT(refused_data(folder, request), ContainsSubstring("a.safetensors: expected"));
}

}  // namespace stagecraft
