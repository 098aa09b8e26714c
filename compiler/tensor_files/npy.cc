#include "stagecraft/compiler/tensor_files/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/files/whole_file.h"
#include "stagecraft/compiler/libtorch/type_text.h"
#include "stagecraft/compiler/tensor_files/tensor_bytes.h"

namespace stagecraft {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::uint64_t kLongestNpyHeader = std::uint64_t{1} << 20U;
constexpr std::size_t kNpyAlignment = 64;

constexpr std::array<std::pair<std::string_view, at::ScalarType>, 11> kNpyTypes{
    {{"b1", at::kBool},
     {"u1", at::kByte},
     {"i1", at::kChar},
     {"i2", at::kShort},
     {"i4", at::kInt},
     {"i8", at::kLong},
     {"f2", at::kHalf},
     {"f4", at::kFloat},
     {"f8", at::kDouble},
     {"c8", at::kComplexFloat},
     {"c16", at::kComplexDouble}}};

/// HeaderParser reads the header's Python text: a dictionary of a string, a truth value and a
/// tuple.
class HeaderParser {
 public:
  HeaderParser(const TensorFile& file, std::string_view text) : file_(file), text_(text) {}

  NpyHeader parse() {
    NpyHeader header;
    bool type = false;
    bool order = false;
    bool shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !std::exchange(type, true)) {
        header.dtype = dtype();
      } else if (key == "fortran_order" && !std::exchange(order, true)) {
        header.columns_first = truth();
      } else if (key == "shape" && !std::exchange(shape, true)) {
        header.sizes = tuple();
      } else {
        file_.refuse("descr, fortran_order and shape, each once", fmt::format("'{}'", key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip();
    if (!text_.empty()) {
      file_.refuse("the end of the header", fmt::format("'{}'", text_.substr(0, 20)));
    }
    if (!type || !order || !shape) {
      file_.refuse("descr, fortran_order and shape in the header", "not all of them");
    }
    return header;
  }

 private:
  void skip() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\r\n"), text_.size())); }

  bool accept(char c) {
    skip();
    const bool there = !text_.empty() && text_.front() == c;
    text_.remove_prefix(there ? 1 : 0);
    return there;
  }

  void expect(char c) {
    if (!accept(c)) {
      refuse(fmt::format("'{}' in the header", c));
    }
  }

  [[noreturn]] void refuse(const std::string& expected) const {
    file_.refuse(expected, text_.empty() ? "its end" : fmt::format("'{}'", text_.substr(0, 20)));
  }

  std::string_view string() {
    skip();
    const char quote = text_.empty() ? ' ' : text_.front();
    const std::size_t end = quote == '\'' || quote == '"' ? text_.find(quote, 1) : text_.npos;
    if (end == text_.npos) {
      refuse("a string in the header");
    }
    const std::string_view word = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return word;
  }

  bool truth() {
    skip();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return word == "True";
      }
    }
    refuse("True or False in the header");
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> numbers;
    expect('(');
    while (!accept(')')) {
      std::int64_t number = 0;
      skip();
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
      if (error != std::errc()) {
        refuse("a size in the header");
      }
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      accept('L');  // a suffix of Python 2
      numbers.push_back(number);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return numbers;
  }

  at::ScalarType dtype() {
    skip();
    if (text_.starts_with('[')) {
      file_.refuse("numbers of one type", "a structured array");
    }
    const std::string_view descr = string();
    const std::string_view type = descr.substr(std::min<std::size_t>(1, descr.size()));
    const auto found =
        std::ranges::find(kNpyTypes, type, [](const auto& known) { return known.first; });
    if (descr.starts_with('>')) {
      file_.refuse("little endian numbers",
                   fmt::format("'{}'; write array.astype('<{}')", descr, type));
    }
    if (found == kNpyTypes.end() || std::string_view("<|=").find(descr.front()) == descr.npos) {
      file_.refuse("numbers of type b1, u1, i1, i2, i4, i8, f2, f4, f8, c8 or c16",
                   fmt::format("'{}'; write array.astype(...)", descr));
    }
    return found->second;
  }

  const TensorFile& file_;
  std::string_view text_;
};

/// Reads the header and leaves the file where the numbers begin.
NpyHeader read_header(TensorFile& file) {
  constexpr std::uint64_t kShortest = 10;
  if (file.left() < kShortest) {
    file.refuse("an .npy file", fmt::format("{} bytes", file.left()));
  }
  if (file.text(kMagic.size()) != kMagic) {
    file.refuse("an .npy file of numpy.save", "a file that begins with other bytes");
  }
  const std::string version = file.text(2);
  if (version[0] < 1 || version[0] > 3) {
    file.refuse("version 1, 2 or 3 of the format",
                fmt::format("{}", static_cast<unsigned char>(version[0])));
  }
  const std::uint64_t wide = version[0] == 1 ? 2 : 4;
  if (file.left() < wide) {
    file.refuse("the length of a header", "the end of the file");
  }
  std::uint64_t length = 0;
  const std::string bytes = file.text(wide);
  for (std::size_t i = bytes.size(); i-- > 0;) {
    length = length << 8U | static_cast<unsigned char>(bytes[i]);
  }
  if (length > file.left() || length > kLongestNpyHeader) {
    file.refuse("a header inside the file and of at most 1 MiB", fmt::format("{} bytes", length));
  }
  const std::string text = file.text(length);
  NpyHeader header = HeaderParser(file, text).parse();
  const std::uint64_t needed = file.bytes_of(header.dtype, header.sizes);  // keeps TB-1
  if (needed != file.left()) {
    file.refuse(fmt::format("{} bytes of {} for shape [{}]",
                            needed,
                            type_text(header.dtype),
                            fmt::join(header.sizes, ", ")),
                fmt::format("{}", file.left()));
  }
  header.begin = file.size() - file.left();
  return header;
}

}  // namespace

NpyHeader read_npy_header(const std::string& path) {
  TensorFile file(path);
  return read_header(file);
}

at::Tensor read_npy(const std::string& path) {
  TensorFile file(path);
  const NpyHeader header = read_header(file);
  if (!header.columns_first) {
    return file.tensor(header.dtype, header.sizes);
  }
  std::vector<std::int64_t> sizes = header.sizes;
  std::ranges::reverse(sizes);
  std::vector<std::int64_t> order(sizes.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<std::int64_t>(order.size() - 1 - i);
  }
  return file.tensor(header.dtype, sizes).permute(order).contiguous();
}

void write_npy(const std::string& path, const at::Tensor& tensor) {
  at::Tensor plain = plain_tensor(path, tensor);
  if (plain.scalar_type() == at::kBFloat16) {
    plain = plain.to(at::kFloat);
  }
  const auto type = std::ranges::find(
      kNpyTypes, plain.scalar_type(), [](const auto& known) { return known.second; });
  if (type == kNpyTypes.end()) {
    throw Error(Errc::UsageArgument,
                fmt::format("{}: NumPy has no {}; convert the tensor before",
                            path,
                            type_text(plain.scalar_type())));
  }
  std::string sizes;
  for (const std::int64_t size : plain.sizes()) {
    sizes += fmt::format("{}{}", size, plain.dim() == 1 ? "," : ", ");
  }
  if (plain.dim() > 1) {
    sizes.erase(sizes.size() - 2);
  }
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   plain.element_size() == 1 ? '|' : '<',
                                   type->first,
                                   sizes);
  const std::size_t before = kMagic.size() + 4;
  header.append(kNpyAlignment - 1 - (before + header.size()) % kNpyAlignment, ' ');
  header += '\n';
  std::string front(kMagic);
  front += '\x01';
  front += '\0';
  front += static_cast<char>(header.size() & 0xffU);
  front += static_cast<char>(header.size() >> 8U & 0xffU);
  WholeFile file(path);
  file.write(front + header);
  file.write(bytes_view(plain));
  file.publish();
}

}  // namespace stagecraft
