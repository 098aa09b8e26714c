#include "stagecraft/actors/trainer/state/checkpoint.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <tuple>

#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/quantize_per_tensor.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/trainer/state/sha256.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/same_bits.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/file_size_limit.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using tests::TemporaryFolder;

Checkpoint example() {
  return {{.step = 12,
           .seed = 0xFFFFFFFFFFFFFFFFULL,
           .optimizer = "adamw",
           .processors = {"AVX2 AuthenticAMD", "AVX512 GenuineIntel"},
           .loss_scale = LossScale{.factor = 1024.0, .good = 3, .skipped = 2},
           .loop = LoopState{.epoch = 2,
                             .batches = 3,
                             .random = std::string("\0\xFF\x80", 3),
                             .evaluated = 10,
                             .watch = {.metric = "accuracy",
                                       .goal = Goal::Max,
                                       .best = -0.5,
                                       .best_step = 8,
                                       .waited = 4,
                                       .waited_for_rate = 1,
                                       .rate_factor = 0.25}},
           .frozen = FrozenUpdates{{"a.*", 0}, {"layer?.b", 10}}},
          {{"weight:a", at::arange(6, at::kFloat).view({2, 3})},
           {"buffer:count", at::full({}, 5, at::kLong)},
           {"weight:none", at::arange(0, at::kFloat)}}};
}

/// Returns the file as an older version wrote it. Version 1 had no processors, versions 1 and 2 no
/// scale of losses, versions 1 to 3 no state of a loop, and versions 1 to 4 no frozen groups: an
/// empty list and three times nothing, which end the header.
std::string as_version(int version, const std::string& whole) {
  constexpr std::size_t kPreamble = 24, kAlignment = 64;
  const auto header = static_cast<std::size_t>(static_cast<unsigned char>(whole[16])) +
                      (static_cast<std::size_t>(static_cast<unsigned char>(whole[17])) << 8U);
  const std::size_t shorter = header - static_cast<std::size_t>(5 - version);
  const auto aligned = [](std::size_t at) {
    return (at + kAlignment - 1) / kAlignment * kAlignment;
  };
  const std::string content = whole.substr(0, whole.size() - std::tuple_size_v<Sha256::Digest>);
  std::string old = content.substr(0, kPreamble + shorter);
  old[8] = static_cast<char>(version);
  old[16] = static_cast<char>(shorter & 0xFFU);
  old[17] = static_cast<char>(shorter >> 8U);
  old[kPreamble] = static_cast<char>(0x93 + version);  // an array of 3 and one field per version
  old.resize(aligned(old.size()));
  old += content.substr(aligned(kPreamble + header));
  Sha256 sha;
  sha.add(old);
  const Sha256::Digest digest = sha.finish();
  return old + std::string(reinterpret_cast<const char*>(digest.data()), digest.size());
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
    check_same_model(header_of(found), wanted);
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
  CHECK(static_cast<const CheckpointFacts&>(read) == example());
  REQUIRE(read.tensors.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(read.tensors[i].name == example().tensors[i].name);
    CHECK(read.tensors[i].tensor.scalar_type() == example().tensors[i].tensor.scalar_type());
    CHECK(at::equal(read.tensors[i].tensor, example().tensors[i].tensor));
  }
  CHECK(CheckpointReader(path).header() == header_of(example()));
  CHECK(message_of(read, expected()).empty());
}

TEST_CASE("checkpoints of older versions are read, and lack what these did not know",
          "[actors][checkpoint]") {
  const int version = GENERATE(1, 2, 3, 4);
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  Checkpoint older = example();
  older.processors.clear();
  older.loss_scale.reset();
  older.loop.reset();
  older.frozen.reset();
  write_checkpoint(path, older);
  write_bytes(path, as_version(version, tests::read_text_file(path)));
  const Checkpoint read = read_checkpoint(path);
  CHECK(read.processors.empty());
  CHECK_FALSE(read.loss_scale);
  CHECK_FALSE(read.loop);
  CHECK_FALSE(read.frozen);
  CHECK(message_of(read, expected()).empty());
  CHECK(at::equal(read.tensors[0].tensor, example().tensors[0].tensor));
}

TEST_CASE("a checkpoint with an impossible scale of losses is refused",
          "[actors][checkpoint][bad-input]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  Checkpoint wrong = example();
  wrong.loss_scale = GENERATE(LossScale{.factor = 3.0},
                              LossScale{.factor = std::numeric_limits<double>::quiet_NaN()},
                              LossScale{.factor = 2.0, .good = 13},
                              LossScale{.factor = 2.0, .skipped = -1});
  CHECK(thrown_by([&] { write_checkpoint(path, wrong); }) == Errc::UsageFile);
}

TEST_CASE("a checkpoint with groups that were frozen in impossible updates is refused",
          "[actors][checkpoint][bad-input]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  Checkpoint wrong = example();
  // Two of the 12 steps changed no weight.
  wrong.frozen = GENERATE(FrozenUpdates{{"a", 11}}, FrozenUpdates{{"a", 1}, {"b", -1}});
  CHECK(thrown_by([&] { write_checkpoint(path, wrong); }) == Errc::UsageFile);
}

TEST_CASE("a checkpoint with an impossible state of a loop is refused",
          "[actors][checkpoint][bad-input]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  Checkpoint wrong = example();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  wrong.loop = GENERATE(LoopState{.epoch = 0},
                        LoopState{.batches = -1},
                        LoopState{.evaluated = 13},
                        LoopState{.random = std::string(1U << 20U, 'x')},
                        LoopState{.watch = {.metric = std::string(1U << 20U, 'x')}},
                        LoopState{.evaluated = 12, .watch = {.best_step = 13}},
                        LoopState{.evaluated = 11, .watch = {.best_step = 12}},
                        LoopState{.evaluated = 12, .watch = {.best = kNan}},
                        LoopState{.evaluated = 12, .watch = {.mark = kNan}},
                        LoopState{.evaluated = 11, .watch = {.waited = 12}},
                        LoopState{.evaluated = 12, .watch = {.waited_for_rate = 1}},
                        LoopState{.watch = {.rate_factor = -1.0}},
                        LoopState{.watch = {.rate_factor = 1.5}},
                        LoopState{.watch = {.rate_factor = kNan}});
  CHECK(thrown_by([&] { write_checkpoint(path, wrong); }) == Errc::UsageFile);
}

TEST_CASE("facts of a state come back from their text, and another text is refused",
          "[actors][checkpoint][bad-input]") {
  const CheckpointFacts facts = example();
  const std::string text = packed_facts(facts);
  CHECK(unpacked_facts(text) == facts);
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    CHECK(thrown_by([&] { (void)unpacked_facts(text.substr(0, bytes)); }) ==
          Errc::CheckpointFormat);
  }
  CheckpointFacts impossible = facts;
  impossible.loop->epoch = 0;
  CHECK(thrown_by([&] { (void)unpacked_facts(packed_facts(impossible)); }) ==
        Errc::CheckpointFormat);
}

TEST_CASE("a trainer keeps the states of a loop for the steps in progress", "[actors][loop]") {
  LoopStates states(2);
  CHECK_FALSE(states.at(0));
  for (std::int64_t step = 1; step <= 3; ++step) {
    states.put(step, {.batches = step});
  }
  CHECK_FALSE(states.at(1));
  CHECK(states.at(2)->batches == 2);
  states.put(2, {.batches = 7});  // step 3 has failed
  CHECK(states.at(2)->batches == 7);
  CHECK_FALSE(states.at(3));
  states.replace(5, LoopState{.batches = 9});
  CHECK_FALSE(states.at(2));
  CHECK(states.at(5)->batches == 9);
  states.replace(5, std::nullopt);
  CHECK_FALSE(states.at(5));
}

TEST_CASE("processors are compared where both sides know theirs", "[actors][checkpoint]") {
  CHECK(other_processors({"AVX2"}, {"AVX2"}).empty());
  CHECK(other_processors({}, {"AVX2"}).empty());
  CHECK(other_processors({"AVX2"}, {}).empty());
  CHECK_THAT(other_processors({"AVX2", "AVX512"}, {"AVX2"}),
             Catch::Matchers::ContainsSubstring("computed with AVX2 and AVX512") &&
                 Catch::Matchers::ContainsSubstring("these compute with AVX2:"));
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
  std::filesystem::create_directory(folder.path() + "/taken");
  CHECK(thrown_by([&] { write_checkpoint(folder.path() + "/taken", example()); }) ==
        Errc::UsageFile);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a checkpoint does not take the place of what is no file, and a link stays one",
          "[actors][checkpoint]") {
  const TemporaryFolder folder;
  const std::string pipe = folder.path() + "/pipe", link = folder.path() + "/link";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(thrown_by([&] { write_checkpoint(pipe, example()); }) == Errc::UsageFile);
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(thrown_by([&] { (void)read_checkpoint(pipe); }) == Errc::UsageFile);
  std::filesystem::create_symlink("a.ckpt", link);
  write_checkpoint(link, example());
  CHECK(std::filesystem::is_symlink(link));
  CHECK(read_checkpoint(folder.path() + "/a.ckpt").step == 12);
}

/// Returns a checkpoint with this header and the right checksum.
std::string sealed(const std::string& header) {
  std::string bytes = "STGCRAFT" + std::string("\1\0\0\0\0\0\0\0", 8);
  for (std::size_t i = 0; i < 8; ++i) {
    bytes += static_cast<char>(header.size() >> (8 * i));
  }
  bytes += header;
  Sha256 sha;
  sha.add(bytes);
  const Sha256::Digest digest = sha.finish();
  return bytes + std::string(digest.begin(), digest.end());
}

TEST_CASE("a header that claims more than it has allocates nothing for it",
          "[actors][checkpoint][hostile]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  const auto refused_header = [&](const std::string& header) {
    write_bytes(path, sealed(header));
    try {
      (void)read_checkpoint(path);
    } catch (const Error& error) {
      CHECK(error.code() == Errc::CheckpointFormat);
      return error.message();
    }
    return std::string();
  };
  const std::string list("\xdd\x0a\xaa\xaa\xaa", 5);  // of 179 million: 4 GiB of values
  CHECK_THAT(refused_header(list), ContainsSubstring("array size overflow"));
  CHECK_THAT(refused_header("\x94\1\1" + list), ContainsSubstring("array size overflow"));
  CHECK_THAT(refused_header("\xdb" + std::string("\x7f\xff\xff\xff", 4)),
             ContainsSubstring("insufficient bytes"));
  CHECK_THAT(refused_header(std::string("\xdf\x0a\xaa\xaa\xaa", 5)),
             ContainsSubstring("map size overflow"));
  CHECK_THAT(refused_header(std::string(100, '\x91')), ContainsSubstring("depth size overflow"));
}

// ---- types and kinds of tensors -----------------------------------------------------------------

/// Returns a tensor of that type whose bytes all differ; undefined if LibTorch has no such tensor.
at::Tensor tensor_of(at::ScalarType type) {
  try {
    const at::Tensor tensor = at::empty({3, 2}, at::TensorOptions(type));
    auto* bytes = static_cast<unsigned char*>(tensor.mutable_data_ptr());
    for (std::size_t i = 0; i < tensor.storage().nbytes(); ++i) {
      bytes[i] = static_cast<unsigned char>(type == at::kBool ? i % 2 : 7 * i + 1);
    }
    return tensor;
  } catch (const c10::Error&) {
    return {};
  }
}

std::vector<at::ScalarType> all_types() {
  std::vector<at::ScalarType> types;
  for (int i = 0; i < static_cast<int>(at::ScalarType::Undefined); ++i) {
    types.push_back(static_cast<at::ScalarType>(i));
  }
  return types;
}

Checkpoint one_tensor(const at::Tensor& tensor) {
  return {{.step = 1, .seed = 2, .optimizer = "sgd"}, {{"buffer:x", tensor}}};
}

TEST_CASE("every type that a plain tensor can have comes back bit by bit", "[actors][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  int kept = 0;
  for (const at::ScalarType type : all_types()) {
    CAPTURE(c10::toString(type));
    const at::Tensor tensor = tensor_of(type);
    if (!tensor.defined() || c10::isQIntType(type)) {
      continue;
    }
    ++kept;
    write_checkpoint(path, one_tensor(tensor));
    CHECK(same_bits(read_checkpoint(path).tensors.at(0).tensor, tensor));
  }
  CHECK(kept >= 26);
}

TEST_CASE("a conjugate, a transposed and a sliced tensor are kept as the values they have",
          "[actors][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  const at::Tensor complex = at::complex(at::arange(6, at::kFloat), at::arange(1, 7, at::kFloat));
  const at::Tensor tensor = GENERATE_COPY(complex.conj(),
                                          at::imag(complex.conj()),
                                          complex.view({2, 3}).t(),
                                          complex.slice(0, 1, 6, 2));
  write_checkpoint(path, one_tensor(tensor));
  CHECK(at::equal(read_checkpoint(path).tensors.at(0).tensor, tensor.resolve_conj().resolve_neg()));
}

TEST_CASE("what is no dense tensor of plain numbers is refused by name, and nothing is written",
          "[actors][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.ckpt", "an older one");
  const auto refused = [&](const at::Tensor& tensor, const std::string& why) {
    try {
      write_checkpoint(path, one_tensor(tensor));
      FAIL("was written");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::CheckpointFormat);
      CHECK_THAT(error.message(),
                 Catch::Matchers::ContainsSubstring("buffer:x") &&
                     Catch::Matchers::ContainsSubstring(why));
    }
    CHECK(tests::read_text_file(path) == "an older one");
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  };
  refused(at::full({2, 2}, 1.0).to_sparse(), "sparse");
  refused(at::full({2, 2}, 1.0).to_sparse_csr(), "sparse");
  refused(at::quantize_per_tensor(at::full({4}, 1.0), 0.1, 0, at::kQInt8), "quantized");
  refused(at::empty({2}, at::TensorOptions(at::kMeta)), "memory of this machine");
  refused({}, "undefined");
  for (const at::ScalarType type : all_types()) {
    if (const at::Tensor tensor = tensor_of(type); tensor.defined() && c10::isQIntType(type)) {
      refused(tensor, "quantized");
    }
  }
}

// ---- a written file is read back ----------------------------------------------------------------

TEST_CASE("a checkpoint that reads back differently does not take its place (CK-3)",
          "[actors][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.ckpt", "an older one");
  const auto published = [&](const Checkpoint& checkpoint, auto&& damage) {
    CheckpointSave save(path, header_of(checkpoint));
    for (const StateTensor& state : checkpoint.tensors) {
      save.add(state.tensor);
    }
    save.finish_writing();
    damage(save.temporary());
    save.publish();
  };
  const auto change_byte = [](const std::string& at) {
    std::string bytes = tests::read_text_file(at);
    bytes[bytes.size() / 2] ^= 1;
    write_bytes(at, bytes);
  };
  const auto another = [](const std::string& at) {  // whole, and not what was written
    Checkpoint other = example();
    other.tensors[0].tensor[1][2] = 7.0;
    write_checkpoint(at, other);
  };
  for (const auto& damage :
       std::vector<std::function<void(const std::string&)>>{change_byte, another}) {
    try {
      published(example(), damage);
      FAIL("was published");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::UsageFile);
      CHECK_THAT(error.message(),
                 Catch::Matchers::ContainsSubstring("'" + path + "' reads back differently"));
    }
  }
  CHECK(tests::read_text_file(path) == "an older one");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  // A file that cannot be read at all has an error of its own.
  try {
    published(example(), [](const std::string& at) { std::filesystem::remove(at); });
    FAIL("was published");
  } catch (const Error& error) {
    CHECK_THAT(error.message(), Catch::Matchers::ContainsSubstring("cannot be read"));
  }
  CHECK(tests::read_text_file(path) == "an older one");
  published(example(), [](const std::string&) {});
  CHECK(read_checkpoint(path).step == 12);
}

TEST_CASE("a tensor that is not the one of the header is not written", "[actors][checkpoint]") {
  const TemporaryFolder folder;
  CheckpointSave save(folder.path() + "/a.ckpt", header_of(example()));
  CHECK(thrown_by([&] { save.add(at::zeros({3, 2})); }) == Errc::Internal);
  CHECK(thrown_by([&] { save.publish(); }) == Errc::Internal);  // some are missing
}

TEST_CASE("an entry knows its bytes, and a save takes no type that is not kept",
          "[actors][checkpoint]") {
  CHECK(entry_of("a", "Float", {2, 3}).bytes == 24);
  CHECK(entry_of("a", "Long", {}).bytes == 8);
  CHECK(entry_of("a", "Half", {0, 3}).bytes == 0);
  const TensorEntry quantized = entry_of("buffer:x", "QInt8", {4});
  CHECK(quantized.bytes == 4);
  const TemporaryFolder folder;
  CHECK(thrown_by([&] {
          const CheckpointSave save(folder.path() + "/a.ckpt", {{}, {quantized}});
        }) == Errc::CheckpointFormat);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a disk that fills while a checkpoint is written leaves the older file (CK-1)",
          "[actors][checkpoint][faults]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.ckpt", "an older one");
  Checkpoint large = example();
  large.tensors.insert(large.tensors.begin(), {"weight:large", at::ones({10'000})});
  std::string why;
  {
    const tests::FileSizeLimit full(4096);
    try {
      write_checkpoint(path, large);
    } catch (const Error& error) {
      CHECK(error.code() == Errc::UsageFile);
      why = error.message();
    }
  }
  CHECK_THAT(why, ContainsSubstring(path) && ContainsSubstring("make room"));
  CHECK(tests::read_text_file(path) == "an older one");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  write_checkpoint(path, large);
  CHECK(read_checkpoint(path).tensors.size() == 4);
}

TEST_CASE("a tensor or a share of it is read by its name", "[actors][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  write_checkpoint(path, example());
  const CheckpointReader reader(path);
  const at::Tensor whole = example().tensors[0].tensor;
  CHECK(at::equal(read_tensor(reader, "weight:a"), whole));
  CHECK(
      at::equal(read_tensor(reader, share_name("weight:a", 1, 5)), whole.view(-1).narrow(0, 1, 4)));
  CHECK(read_tensor(reader, "weight:none").numel() == 0);
  CHECK(thrown_by([&] { (void)read_tensor(reader, share_name("weight:a", 1, 7)); }) ==
        Errc::Internal);
  CHECK(thrown_by([&] { (void)read_tensor(reader, "weight:b"); }) == Errc::Internal);
  CHECK(reader.position_of("weight:none") == 2);
  CHECK_FALSE(reader.position_of("weight:b"));
}

/// Bytes that are checked at once, and read again at once.
constexpr std::int64_t kCheckedChunk = 1 << 20;

Checkpoint of_bytes(std::int64_t bytes) {
  Checkpoint checkpoint = example();
  checkpoint.tensors.push_back(
      {"weight:large", at::arange(bytes, at::kLong).remainder(251).to(at::kByte)});
  return checkpoint;
}

TEST_CASE("a tensor that changes after the checksum was right is not used (CK-2)",
          "[actors][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  const Checkpoint checkpoint = of_bytes(4 * kCheckedChunk);
  write_checkpoint(path, checkpoint);
  const std::string whole = tests::read_text_file(path);
  const at::Tensor& large = checkpoint.tensors.back().tensor;
  const auto share = [](std::int64_t from, std::int64_t to) {
    return share_name("weight:large", from, to);
  };
  const std::string elsewhere =
      share(3 * kCheckedChunk, 3 * kCheckedChunk + 9);  // in a chunk that stays
  for (const std::int64_t byte :
       {std::int64_t{100}, kCheckedChunk - 1, kCheckedChunk, 2 * kCheckedChunk + 7}) {
    write_bytes(path, whole);
    const CheckpointReader reader(path);
    std::string changed = whole;
    changed[static_cast<std::size_t>(byte)] ^= 1;
    write_bytes(path, changed);
    CHECK(at::equal(read_tensor(reader, elsewhere), large.narrow(0, 3 * kCheckedChunk, 9)));
    const std::int64_t begin =
        byte / kCheckedChunk * kCheckedChunk;  // of the tensor, which begins a little later
    CHECK_THAT(refusal([&] { (void)read_tensor(reader, share(begin, begin + 1)); },
                       Errc::CheckpointFormat),
               ContainsSubstring(path) && ContainsSubstring("changed since"));
    CHECK(thrown_by([&] { (void)read_tensor(reader, "weight:large"); }) == Errc::CheckpointFormat);
    write_bytes(path, whole);
    CHECK(at::equal(read_tensor(reader, "weight:large"), large));
  }
}

TEST_CASE("a read that fails leaves nothing to those after it", "[actors][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  const Checkpoint checkpoint = of_bytes(4 * kCheckedChunk);
  write_checkpoint(path, checkpoint);
  const std::string whole = tests::read_text_file(path);
  const CheckpointReader reader(path);
  const auto first = [&] { return read_tensor(reader, share_name("weight:large", 0, 9)); };
  CHECK(at::equal(first(), checkpoint.tensors.back().tensor.narrow(0, 0, 9)));
  write_bytes(path, whole.substr(0, static_cast<std::size_t>(kCheckedChunk) + 100));
  CHECK(thrown_by([&] { (void)read_tensor(reader, "weight:large"); }) == Errc::CheckpointFormat);
  write_bytes(path, whole);
  CHECK(at::equal(first(), checkpoint.tensors.back().tensor.narrow(0, 0, 9)));
}

TEST_CASE("a checkpoint of any number of bytes is checked and read to its end",
          "[actors][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  write_checkpoint(path, of_bytes(kCheckedChunk));
  const auto others =
      static_cast<std::int64_t>(std::filesystem::file_size(path)) - 32 - kCheckedChunk;
  for (const std::int64_t more : {-1, 0, 1}) {
    const Checkpoint checkpoint = of_bytes(2 * kCheckedChunk - others + more);
    write_checkpoint(path, checkpoint);
    CHECK(static_cast<std::int64_t>(std::filesystem::file_size(path)) ==
          2 * kCheckedChunk + more + 32);
    CHECK(at::equal(read_checkpoint(path).tensors.back().tensor, checkpoint.tensors.back().tensor));
  }
}

TEST_CASE("weights and buffers of a checkpoint are read under the module's names",
          "[actors][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  Checkpoint checkpoint = example();
  checkpoint.tensors.push_back({"exp_avg:a", at::zeros({2, 3})});
  checkpoint.tensors.push_back({"average:a", at::zeros({2, 3})});
  write_checkpoint(path, checkpoint);
  const std::vector<NamedTensor> state = read_module_state(CheckpointReader(path));
  REQUIRE(state.size() == 3);
  CHECK(state[0].name == "a");
  CHECK(at::equal(state[0].tensor, at::arange(6, at::kFloat).view({2, 3})));
  CHECK(state[1].name == "count");
  CHECK(state[1].tensor.item<std::int64_t>() == 5);
  CHECK(state[2].name == "none");
}

TEST_CASE("a file that is not there cannot be read", "[actors][checkpoint]") {
  CHECK(thrown_by([] { (void)read_checkpoint("/no/such/file.ckpt"); }) == Errc::UsageFile);
  try {
    (void)read_checkpoint("/no/such/file.ckpt");
  } catch (const Error& error) {
    CHECK(error.message() ==
          "the checkpoint '/no/such/file.ckpt' cannot be read: expected a file, found none");
  }
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
    CHECK_THAT(message_of(example(), wanted), ContainsSubstring("it has no parameter b, which"));
  }
  SECTION("an extra tensor") {
    wanted.tensors.erase(wanted.tensors.begin());
    CHECK_THAT(message_of(example(), wanted), ContainsSubstring("it has parameter a, which"));
  }
  SECTION("another shape") {
    wanted.tensors[0].shape = {3, 2};
    CHECK_THAT(message_of(example(), wanted), ContainsSubstring("float32 [2, 3]"));
  }
  SECTION("another type") {
    wanted.tensors[0].type = "Double";
    CHECK_THAT(message_of(example(), wanted), ContainsSubstring("float64 [2, 3]"));
  }
}

TEST_CASE("a tensor that two ranks have is one entry of the checkpoint", "[actors][checkpoint]") {
  ExpectedState wanted = expected();
  wanted.tensors.push_back(wanted.tensors[1]);
  CHECK(message_of(example(), wanted).empty());
}

}  // namespace
}  // namespace stagecraft
