#include "stagecraft/compiler/import/archive/archive.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <caffe2/serialize/file_adapter.h>
#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/foreign_failure.h"
#include "stagecraft/compiler/libtorch/lack_of_memory.h"

namespace stagecraft {
namespace {

class BytesAdapter final : public caffe2::serialize::ReadAdapterInterface {
 public:
  explicit BytesAdapter(std::string_view bytes) : bytes_(bytes) {}
  size_t size() const override { return bytes_.size(); }
  size_t read(uint64_t position, void* to, size_t n, const char* /*what*/) const override {
    if (position >= bytes_.size()) {
      return 0;
    }
    const std::size_t count = std::min(n, bytes_.size() - position);
    std::memcpy(to, bytes_.data() + position, count);
    return count;
  }

 private:
  std::string_view bytes_;
};

/// Converts foreign errors into ours. Only the first line of a message of LibTorch's reader is for
/// people.
template <class F>
auto translated(const Archive& archive, std::string_view doing, F&& body) {
  try {
    return body();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    if (const auto lack = lack_of_memory(e)) {
      throw Error(*lack);
    }
    const std::string text = foreign_text(e);
    archive.refuse(fmt::format("{}: {}", doing, text.substr(0, text.find('\n'))));
  }
}

}  // namespace

Archive::Archive(const std::string& path) : name_(path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    refuse(status.type() == std::filesystem::file_type::not_found ? "expected a file, found none"
                                                                  : error.message());
  }
  if (!std::filesystem::is_regular_file(status)) {
    refuse("expected a file, found a folder or a device");
  }
  translated(*this, "it cannot be read", [&] {
    open(std::make_shared<caffe2::serialize::FileAdapter>(path));
  });
}

Archive::Archive(std::string_view bytes, std::string name) : name_(std::move(name)) {
  open(std::make_shared<BytesAdapter>(bytes));
}

Archive::~Archive() = default;

void Archive::open(std::shared_ptr<caffe2::serialize::ReadAdapterInterface> bytes) {
  size_ = bytes->size();
  char magic[2] = {};
  if (bytes->read(0, magic, sizeof magic) != sizeof magic || magic[0] != 'P' || magic[1] != 'K') {
    refuse(
        "expected a ZIP archive, as torch.export.save and torch.jit.save write it; the file begins "
        "with other bytes");
  }
  translated(*this, "the archive is damaged or incomplete", [&] {
    reader_ = std::make_unique<caffe2::serialize::PyTorchStreamReader>(std::move(bytes));
  });
}

std::vector<std::string> Archive::records() const {
  return translated(
      *this, "the archive's directory is damaged", [&] { return reader_->getAllRecords(); });
}

bool Archive::has(const std::string& record) const {
  return translated(
      *this, "the archive's directory is damaged", [&] { return reader_->hasRecord(record); });
}

void Archive::claim(const std::string& record) {
  if (!has(record)) {
    refuse(
        fmt::format("the record {} is missing; the file is incomplete or of another kind", record));
  }
  const std::size_t size = reader_->getRecordSize(record);
  const std::size_t begin = reader_->getRecordOffset(record);
  if (begin > size_ || size > size_ - begin || size > size_ - claimed_) {
    refuse(fmt::format(
        "the record {} claims {} bytes, and a file of {} cannot hold them (records are stored "
        "uncompressed, each once)",
        record,
        size,
        size_));
  }
  claimed_ += size;
}

std::string Archive::text(const std::string& record) {
  return translated(*this, "the record " + record + " cannot be read", [&] {
    claim(record);
    std::string result(reader_->getRecordSize(record), '\0');
    reader_->getRecord(record, result.data(), result.size());
    return result;
  });
}

c10::Storage Archive::storage(const std::string& record) {
  return translated(*this, "the record " + record + " cannot be read", [&] {
    claim(record);
    auto [data, size] = reader_->getRecord(record);
    return c10::Storage(c10::Storage::use_byte_size_t(),
                        static_cast<std::int64_t>(size),
                        std::move(data),
                        /*allocator=*/nullptr,
                        /*resizable=*/false);
  });
}

void Archive::refuse(std::string_view what) const {
  throw Error(Errc::UsageFile, fmt::format("{}: {}", name_, what));
}

}  // namespace stagecraft
