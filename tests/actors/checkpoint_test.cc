#include "stagecraft/actors/checkpoint.h"

#include <filesystem>
#include <fstream>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/futures/waiting.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft {
namespace {

using tests::TemporaryFolder;

Checkpoint example() {
  return {.step = 12,
          .seed = 0xFFFFFFFFFFFFFFFFULL,
          .optimizer = "adamw",
          .tensors = {{"weight:a", at::arange(6, at::kFloat).view({2, 3})},
                      {"buffer:count", at::full({}, 5, at::kLong)},
                      {"weight:none", at::arange(0, at::kFloat)}}};
}

ExpectedState expected() {
  return {.seed = 0xFFFFFFFFFFFFFFFFULL,
          .optimizer = "adamw",
          .tensors = {{"weight:a", "Float", {2, 3}},
                      {"buffer:count", "Long", {}},
                      {"weight:none", "Float", {0}}}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string message_of(const Checkpoint& found, const ExpectedState& wanted) {
  try {
    check_same_model(found, wanted);
  } catch (const Error& error) {
    CHECK(error.code() == Errc::CheckpointMismatch);
    return error.message();
  }
  return "";
}

TEST_CASE("what is written to a checkpoint is read back", "[actors][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  write_checkpoint(path, example());
  const Checkpoint read = read_checkpoint(path);
  CHECK(read.step == 12);
  CHECK(read.seed == example().seed);
  CHECK(read.optimizer == "adamw");
  REQUIRE(read.tensors.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(read.tensors[i].name == example().tensors[i].name);
    CHECK(read.tensors[i].tensor.scalar_type() == example().tensors[i].tensor.scalar_type());
    CHECK(at::equal(read.tensors[i].tensor, example().tensors[i].tensor));
  }
  CHECK(message_of(read, expected()).empty());
}

TEST_CASE("a checkpoint takes the place of an older one and leaves nothing beside it (CK-1)",
          "[actors][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  write_bytes(path, "an older one");
  write_checkpoint(path, example());
  CHECK(read_checkpoint(path).step == 12);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a place that cannot be written to is an error", "[actors][checkpoint]") {
  const TemporaryFolder folder;
  CHECK(thrown_by([&] { write_checkpoint(folder.path() + "/no/such/a.ckpt", example()); }) ==
        Errc::UsageFile);
  // A folder in its place is found out last, when the file is moved there.
  std::filesystem::create_directory(folder.path() + "/taken");
  CHECK(thrown_by([&] { write_checkpoint(folder.path() + "/taken", example()); }) ==
        Errc::UsageFile);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a file that is not there cannot be read", "[actors][checkpoint]") {
  CHECK(thrown_by([] { (void)read_checkpoint("/no/such/file.ckpt"); }) == Errc::UsageFile);
}

TEST_CASE("a checkpoint cut short anywhere is refused (CK-2)", "[actors][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  write_checkpoint(path, example());
  const std::string whole = tests::read_text_file(path);
  for (std::size_t length = 0; length < whole.size(); length += 1 + length / 16) {
    write_bytes(path, whole.substr(0, length));
    CHECK(thrown_by([&] { (void)read_checkpoint(path); }) == Errc::CheckpointFormat);
  }
  write_bytes(path, whole + "x");
  CHECK(thrown_by([&] { (void)read_checkpoint(path); }) == Errc::CheckpointFormat);
}

TEST_CASE("a checkpoint with any byte changed is refused (CK-2)", "[actors][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  write_checkpoint(path, example());
  const std::string whole = tests::read_text_file(path);
  for (std::size_t i = 0; i < whole.size(); i += 3) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x20);
    write_bytes(path, changed);
    CHECK(thrown_by([&] { (void)read_checkpoint(path); }) == Errc::CheckpointFormat);
  }
}

TEST_CASE("a foreign file is refused", "[actors][checkpoint]") {
  const TemporaryFolder folder;
  const auto content = GENERATE(std::string(), std::string("STGCRAFT"), std::string(5000, 'x'));
  const std::string path = folder.write("a.ckpt", content);
  CHECK(thrown_by([&] { (void)read_checkpoint(path); }) == Errc::CheckpointFormat);
}

TEST_CASE("the first difference between checkpoint and trainer is named", "[actors][checkpoint]") {
  using Catch::Matchers::ContainsSubstring;
  ExpectedState wanted = expected();
  SECTION("another optimizer") {
    wanted.optimizer = "sgd";
    CHECK_THAT(message_of(example(), wanted), ContainsSubstring("sgd"));
  }
  SECTION("another seed") {
    wanted.seed = 3;
    CHECK_THAT(message_of(example(), wanted), ContainsSubstring("seed 3"));
  }
  SECTION("a missing tensor") {
    wanted.tensors.push_back({"weight:b", "Float", {1}});
    CHECK_THAT(message_of(example(), wanted), ContainsSubstring("it has no weight:b"));
  }
  SECTION("an extra tensor") {
    wanted.tensors.erase(wanted.tensors.begin());
    CHECK_THAT(message_of(example(), wanted), ContainsSubstring("it has weight:a"));
  }
  SECTION("another shape") {
    wanted.tensors[0].shape = {3, 2};
    CHECK_THAT(message_of(example(), wanted), ContainsSubstring("Float [2, 3]"));
  }
  SECTION("another type") {
    wanted.tensors[0].type = "Double";
    CHECK_THAT(message_of(example(), wanted), ContainsSubstring("Double [2, 3]"));
  }
}

TEST_CASE("a tensor that two ranks have is one entry of the checkpoint", "[actors][checkpoint]") {
  ExpectedState wanted = expected();
  wanted.tensors.push_back(wanted.tensors[1]);
  CHECK(message_of(example(), wanted).empty());
}

}  // namespace
}  // namespace stagecraft
