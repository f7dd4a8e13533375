#include "gantry/probe.h"

#include <utility>

#include "gantry/error.h"
#include "gantry/tensor_text.h"
#include "gantry/text.h"

namespace gantry {

namespace {

/// What nobody else writes to: on the CPU, dense, without a graph.
at::Tensor own_copy(const at::Tensor& tensor) {
  at::Tensor dense = tensor.detach();
  if (dense.layout() != at::kStrided) dense = dense.to_dense();
  dense = dense.to(at::kCPU, dense.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  return dense.contiguous();
}

void require(bool condition, std::string_view name, const std::string& what) {
  if (!condition) throw Error(cat("the probe '", name, "' ", what));
}

}  // namespace

void Probes::clear() {
  entries_.clear();
  wanted_ = false;
}

const Probe* Probes::find(std::string_view name) const {
  for (const Probe& probe : entries_)
    if (probe.name == name) return &probe;
  return nullptr;
}

Probe& Probes::at(std::string_view name, Probe::Kind kind) {
  if (name.empty()) throw Error("a probe needs a name, such as \"attention\"");
  Probe fresh;
  fresh.name = name;
  fresh.kind = kind;
  for (Probe& probe : entries_)
    if (probe.name == name) return probe = std::move(fresh);
  return entries_.emplace_back(std::move(fresh));
}

void Probes::image(std::string_view name, const at::Tensor& images, std::vector<std::string> labels) {
  if (!wanted_) return;
  const std::string got = tensor_text(images);
  require(images.defined() && (images.dim() == 3 || images.dim() == 4), name,
          cat("shows pictures, [C, H, W] or [N, C, H, W]; it got ", got));
  const int64_t channels = images.size(-3);
  require(channels == 1 || channels == 3, name, cat("shows pictures of 1 or 3 channels; it got ", got));
  require(images.numel() > 0, name, cat("has no pixel to show; it got ", got));
  const at::ScalarType dtype = images.scalar_type();
  require(dtype == at::kByte || dtype == at::kBool || at::isFloatingType(dtype), name,
          cat("shows pictures of bytes (uint8), or of floating-point numbers from 0 to 1; it got ", got));
  const int64_t count = images.dim() == 4 ? images.size(0) : 1;
  require(labels.empty() || static_cast<int64_t>(labels.size()) == count, name,
          cat("has ", labels.size(), " labels for ", count, count == 1 ? " picture" : " pictures",
              "; give one for each, or none"));
  Probe& probe = at(name, Probe::Kind::image);
  probe.value = own_copy(images);
  probe.labels = std::move(labels);
}

void Probes::tensor(std::string_view name, const at::Tensor& value) {
  if (!wanted_) return;
  require(value.defined(), name, "shows a tensor; it got an undefined one");
  at(name, Probe::Kind::tensor).value = own_copy(value);
}

void Probes::number(std::string_view name, double value) {
  if (!wanted_) return;
  at(name, Probe::Kind::number).number = value;
}

void Probes::text(std::string_view name, std::string text) {
  if (!wanted_) return;
  at(name, Probe::Kind::text).labels = {std::move(text)};
}

void Probes::distribution(std::string_view name, const at::Tensor& values) {
  if (!wanted_) return;
  require(values.defined(), name, "counts the values of a tensor; it got an undefined one");
  require(!values.is_complex(), name, cat("counts real numbers; it got ", tensor_text(values)));
  at(name, Probe::Kind::distribution).value = own_copy(values);
}

}  // namespace gantry
