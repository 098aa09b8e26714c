#include "stagecraft/compiler/tensor_files/safetensors.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/error.h"
#include "stagecraft/base/files/whole_file.h"
#include "stagecraft/compiler/libtorch/type_text.h"
#include "stagecraft/compiler/tensor_files/tensor_bytes.h"

namespace stagecraft {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kLongestSafetensorsHeader = 100'000'000;  // the limit of that library
constexpr std::string_view kMetadata = "__metadata__";
constexpr int kDeepest = 3;  // a shape in a tensor in the header
constexpr std::size_t kSafetensorsAlignment = 8;

constexpr std::array<std::pair<std::string_view, at::ScalarType>, 11> kSafetensorsTypes{
    {{"F64", at::kDouble},
     {"F32", at::kFloat},
     {"F16", at::kHalf},
     {"BF16", at::kBFloat16},
     {"I64", at::kLong},
     {"I32", at::kInt},
     {"I16", at::kShort},
     {"I8", at::kChar},
     {"U8", at::kByte},
     {"BOOL", at::kBool},
     {"C64", at::kComplexFloat}}};

/// HeaderCheck checks names and depths while the header is read, before any value is kept.
class HeaderCheck : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderCheck(const TensorFile& file) : file_(file) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t) override { return true; }
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    names_.emplace_back();
    return deeper();
  }
  bool key(std::string& name) override {
    if (!names_.back().insert(name).second) {
      file_.refuse("every name once", fmt::format("\"{}\" twice", name));
    }
    return true;
  }
  bool end_object() override {
    names_.pop_back();
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override { return deeper(); }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    file_.refuse("a header of JSON", fmt::format("{}", error.what()));
  }

 private:
  bool deeper() {
    if (++depth_ > kDeepest) {
      file_.refuse("a header of tensors", "one that is deeper");
    }
    return true;
  }

  const TensorFile& file_;
  std::vector<std::unordered_set<std::string>> names_;  ///< the names in each open object
  int depth_ = 0;
};

/// Returns the header's text as JSON. A JSON reader keeps one of two members with the same name;
/// here they are an error. The text is read twice, because a reader with a callback takes time that
/// grows with the square of the header.
Json parsed(const TensorFile& file, const std::string& text) {
  HeaderCheck check(file);
  Json::sax_parse(text, &check);
  Json json = Json::parse(text);
  if (!json.is_object()) {
    file.refuse("a header that is a JSON object", "another JSON value");
  }
  return json;
}

/// Returns whole numbers of 0 or more.
std::vector<std::uint64_t> numbers(const Json& tensor, const char* key) {
  const auto found = tensor.find(key);
  std::vector<std::uint64_t> result;
  if (found == tensor.end() || !found->is_array() ||
      !std::ranges::all_of(*found, [](const Json& n) { return n.is_number_unsigned(); })) {
    throw std::invalid_argument(key);
  }
  return found->get<std::vector<std::uint64_t>>();
}

SafetensorsEntry entry_of(const TensorFile& file, const std::string& name, const Json& tensor) {
  SafetensorsEntry entry{.name = name};
  const auto dtype = tensor.is_object() ? tensor.find("dtype") : tensor.end();
  if (!tensor.is_object() || dtype == tensor.end() || !dtype->is_string() || tensor.size() != 3) {
    file.refuse(fmt::format("dtype, shape and data_offsets of \"{}\"", name), tensor.dump());
  }
  const auto type = std::ranges::find(
      kSafetensorsTypes, dtype->get<std::string>(), [](const auto& known) { return known.first; });
  if (type == kSafetensorsTypes.end()) {
    file.refuse(fmt::format("\"{}\" to be of type F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL "
                            "or C64",
                            name),
                dtype->dump());
  }
  entry.dtype = type->second;
  try {
    for (const std::uint64_t size : numbers(tensor, "shape")) {
      entry.sizes.push_back(static_cast<std::int64_t>(size));
    }
    const std::vector<std::uint64_t> offsets = numbers(tensor, "data_offsets");
    if (offsets.size() != 2) {
      throw std::invalid_argument("data_offsets");
    }
    entry.begin = offsets[0];
    entry.end = offsets[1];
  } catch (const std::invalid_argument& key) {
    file.refuse(fmt::format("{} of \"{}\" to be whole numbers from 0 on", key.what(), name),
                tensor.dump());
  }
  return entry;
}

/// Keeps SA-1 and TB-1. Returns the entries in the order of their bytes.
std::vector<SafetensorsEntry> judged(const TensorFile& file,
                                     std::vector<SafetensorsEntry> entries) {
  std::ranges::sort(
      entries, {}, [](const SafetensorsEntry& e) { return std::pair(e.begin, e.end); });
  std::uint64_t at = 0;
  for (const SafetensorsEntry& e : entries) {
    const std::uint64_t needed = file.bytes_of(e.dtype, e.sizes);
    if (e.begin > e.end || e.end > file.left() || e.end - e.begin != needed) {
      file.refuse(
          fmt::format("{} bytes for \"{}\" ({} of shape [{}]) among the {} behind the header",
                      needed,
                      e.name,
                      type_text(e.dtype),
                      fmt::join(e.sizes, ", "),
                      file.left()),
          fmt::format("offsets {} to {}", e.begin, e.end));
    }
    if (e.begin != at) {
      file.refuse(fmt::format("\"{}\" to begin where the tensor before ends, at {}", e.name, at),
                  fmt::format("{}", e.begin));
    }
    at = e.end;
  }
  if (at != file.left()) {
    file.refuse(fmt::format("{} bytes behind the header, those of its tensors", at),
                fmt::format("{}", file.left()));
  }
  return entries;
}

/// Reads the header and leaves the file where the numbers begin.
std::vector<SafetensorsEntry> read_entries(TensorFile& file) {
  std::uint64_t length = 0;
  if (file.left() < sizeof length) {
    file.refuse("a .safetensors file", fmt::format("{} bytes", file.left()));
  }
  file.read(&length, sizeof length);
  if (length > file.left() || length > kLongestSafetensorsHeader) {
    file.refuse("a header inside the file and of at most 100 MB", fmt::format("{} bytes", length));
  }
  const Json header = parsed(file, file.text(length));
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, tensor] : header.items()) {
    if (name != kMetadata) {
      entries.push_back(entry_of(file, name, tensor));
    }
  }
  entries = judged(file, std::move(entries));
  const std::uint64_t front = file.size() - file.left();
  for (SafetensorsEntry& e : entries) {
    e.begin += front;
    e.end += front;
  }
  return entries;
}

}  // namespace

std::vector<SafetensorsEntry> read_safetensors_header(const std::string& path) {
  TensorFile file(path);
  return read_entries(file);
}

std::vector<NamedTensor> read_safetensors(const std::string& path) {
  TensorFile file(path);
  std::vector<NamedTensor> tensors;
  for (const SafetensorsEntry& e : read_entries(file)) {
    tensors.push_back({e.name, file.tensor(e.dtype, e.sizes)});
  }
  std::ranges::sort(tensors, {}, &NamedTensor::name);
  return tensors;
}

void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  header[kMetadata] = {{"format", "pt"}};  // loaders of PyTorch expect this
  std::uint64_t at = 0;
  for (const NamedTensor& t : tensors) {
    const at::Tensor plain = plain_tensor(t.name, t.tensor);
    const auto type = std::ranges::find(
        kSafetensorsTypes, plain.scalar_type(), [](const auto& known) { return known.second; });
    if (type == kSafetensorsTypes.end()) {
      throw Error(
          Errc::UsageArgument,
          fmt::format("{}: safetensors has no {}, which {} is; write a folder of .npy files",
                      path,
                      type_text(plain.scalar_type()),
                      t.name));
    }
    header[t.name] = {{"dtype", type->first},
                      {"shape", plain.sizes().vec()},
                      {"data_offsets", {at, at + plain.nbytes()}}};
    at += plain.nbytes();
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.append((kSafetensorsAlignment - text.size() % kSafetensorsAlignment) % kSafetensorsAlignment,
              ' ');
  const std::uint64_t length = text.size();
  WholeFile file(path);
  file.write({reinterpret_cast<const char*>(&length), sizeof length});
  file.write(text);
  for (const NamedTensor& t : tensors) {
    file.write(bytes_view(plain_tensor(t.name, t.tensor)));
  }
  file.publish();
}

}  // namespace stagecraft
