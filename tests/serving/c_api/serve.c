/* Runs a SavedModel through TensorFlow's C API, with no Python in the process, as TensorFlow Serving does.
 *
 *   serve MODEL [--ops LIBRARY]... [--config FILE] [--no-xla] < requests > answers
 *
 * --ops     a library of operations to load first, as those of tensorflow_text; may be given again
 * --config  a serialized tensorflow.ConfigProto
 * --no-xla  refuse to compile by XLA, by the call with which TensorFlow Serving's main refuses it
 *
 * One process answers requests until its input ends, each before it reads the next, so that a caller may talk to it
 * over a pipe. Numbers are little-endian, as in memory; a string is its length (u64) and its bytes, so it may hold
 * zeros and need not be UTF-8.
 *
 *   greeting  string TensorFlow's version; f64 seconds that loading took
 *   request   string signature; u32 repeats; u32 number of inputs; each: string name, tensor
 *   answer    u32 code, 0 if all is well; string message; u32 repeats; each: f64 seconds;
 *             u64 bytes resident now; u64 the most that were; u32 number of outputs; each: string name, tensor
 *   tensor    u32 TF_DataType; u32 rank; i64 each dimension; its elements: strings, or the bytes as in memory
 *
 * A request that TensorFlow refuses is answered with TensorFlow's code and message. What is wrong with the caller or
 * the model itself ends the process with 2 and a line on standard error.
 */
#define _POSIX_C_SOURCE 200809L

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_tstring.h"

/* TensorFlow copies buffers that are not aligned for Eigen's widest vectors. */
enum { ALIGNMENT = 64, MAX_TENSORS = 16, MAX_RANK = 8 };

/* The C++ function in libtensorflow_cc, by its mangled name; the C API can only turn XLA on. */
extern void disable_xla_compilation(void) __asm__(
#ifdef __APPLE__
    "_"
#endif
    "_ZN10tensorflow21DisableXlaCompilationEv");

/* ---- Errors, memory, streams ---- */

static void die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("serve: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(2);
}

static void *allocate(size_t size) {
  /* aligned_alloc wants a multiple of the alignment; an empty tensor still needs an address. */
  void *memory = aligned_alloc(ALIGNMENT, (size / ALIGNMENT + 1) * ALIGNMENT);
  if (memory == NULL) die("no memory for %zu bytes", size);
  return memory;
}

static void check(TF_Status *status, const char *doing) {
  if (TF_GetCode(status) != TF_OK) die("%s: %s", doing, TF_Message(status));
}

static void read_bytes(void *into, size_t size) {
  if (fread(into, 1, size, stdin) != size) die("the requests end within a request");
}

static void write_bytes(const void *from, size_t size) {
  if (fwrite(from, 1, size, stdout) != size) die("the answers cannot be written");
}

static uint32_t read_u32(void) {
  uint32_t value;
  read_bytes(&value, sizeof value);
  return value;
}

static uint64_t read_u64(void) {
  uint64_t value;
  read_bytes(&value, sizeof value);
  return value;
}

static void write_u32(uint32_t value) { write_bytes(&value, sizeof value); }

static void write_u64(uint64_t value) { write_bytes(&value, sizeof value); }

static void write_f64(double value) { write_bytes(&value, sizeof value); }

static void write_string(const char *at, size_t size) {
  write_u64(size);
  write_bytes(at, size);
}

/* A string with a zero behind it, to free. */
static char *read_string(size_t *size) {
  *size = read_u64();
  char *string = allocate(*size + 1);
  read_bytes(string, *size);
  string[*size] = '\0';
  return string;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* 0 where there is no /proc. */
static uint64_t resident_bytes(void) {
  unsigned long total = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL) return 0;
  if (fscanf(file, "%lu %lu", &total, &resident) != 2) resident = 0;
  fclose(file);
  return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t peak_bytes(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return (uint64_t)usage.ru_maxrss;
#else
  return (uint64_t)usage.ru_maxrss * 1024;
#endif
}

/* ---- Signatures: as much of protocol buffers as finds a tensor's name in a MetaGraphDef ---- */

typedef struct {
  const uint8_t *at, *end;
} Span;

typedef struct {
  uint64_t number; /* 0 when the message has ended */
  Span value;      /* of a message, string or map entry */
} Field;

static uint64_t read_varint(Span *message) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && message->at < message->end; shift += 7) {
    uint8_t byte = *message->at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  die("the model's signatures cannot be read");
  return 0;
}

static Field next_field(Span *message) {
  Field field = {0, {NULL, NULL}};
  if (message->at == message->end) return field;
  uint64_t tag = read_varint(message), size = 0;
  switch (tag & 7) {
    case 0: read_varint(message); break;
    case 1: size = 8; break;
    case 2: size = read_varint(message); break;
    case 5: size = 4; break;
    default: die("the model's signatures cannot be read");
  }
  if (size > (uint64_t)(message->end - message->at)) die("the model's signatures cannot be read");
  field.number = tag >> 3;
  field.value = (Span){message->at, message->at + size};
  message->at += size;
  return field;
}

/* The first field of a number; an empty span if there is none. */
static Span find(Span message, uint64_t number) {
  Field field;
  while ((field = next_field(&message)).number != 0)
    if (field.number == number) return field.value;
  return (Span){NULL, NULL};
}

static int equals(Span span, const char *string) {
  size_t size = (size_t)(span.end - span.at);
  return size == strlen(string) && memcmp(span.at, string, size) == 0;
}

/* The value under a key of a map field, whose entries are messages of key (1) and value (2). */
static Span find_in_map(Span message, uint64_t number, const char *key) {
  Field field;
  while ((field = next_field(&message)).number != 0)
    if (field.number == number && equals(find(field.value, 1), key)) return find(field.value, 2);
  return (Span){NULL, NULL};
}

/* Numbers of fields: tensorflow/core/protobuf/meta_graph.proto. */
enum { META_GRAPH_SIGNATURES = 5, SIGNATURE_INPUTS = 1, SIGNATURE_OUTPUTS = 2, TENSOR_INFO_NAME = 1 };

/* The place in the graph of a TensorInfo, whose name is "operation:index". */
static TF_Output place_of(TF_Graph *graph, Span tensor_info) {
  Span name = find(tensor_info, TENSOR_INFO_NAME);
  char operation[512];
  size_t size = (size_t)(name.end - name.at);
  if (size == 0 || size >= sizeof operation) die("a signature names no tensor");
  memcpy(operation, name.at, size);
  operation[size] = '\0';
  char *colon = strrchr(operation, ':');
  if (colon == NULL) die("a signature names no tensor: %s", operation);
  *colon = '\0';
  TF_Output place = {TF_GraphOperationByName(graph, operation), atoi(colon + 1)};
  if (place.oper == NULL) die("the graph has no operation %s", operation);
  return place;
}

/* ---- Tensors ---- */

/* Called when nobody uses the tensor any more, which may be after the request: outputs can share their inputs. */
static void free_strings(void *data, size_t size, void *unused) {
  (void)unused;
  TF_TString *strings = data;
  for (size_t i = 0; i < size / sizeof *strings; ++i) TF_StringDealloc(&strings[i]);
  free(data);
}

static void free_numbers(void *data, size_t size, void *unused) {
  (void)size;
  (void)unused;
  free(data);
}

static TF_Tensor *read_tensor(void) {
  TF_DataType type = (TF_DataType)read_u32();
  uint32_t rank = read_u32();
  if (rank > MAX_RANK) die("a tensor of rank %u", rank);
  int64_t dimensions[MAX_RANK] = {0};
  read_bytes(dimensions, rank * sizeof *dimensions);
  size_t count = 1;
  for (uint32_t i = 0; i < rank; ++i) count *= (size_t)dimensions[i];
  size_t size = count * (type == TF_STRING ? sizeof(TF_TString) : TF_DataTypeSize(type));
  void *data = allocate(size);
  if (type != TF_STRING) {
    read_bytes(data, size);
    return TF_NewTensor(type, dimensions, (int)rank, data, size, free_numbers, NULL);
  }
  TF_TString *strings = data;
  for (size_t i = 0; i < count; ++i) {
    size_t length;
    char *bytes = read_string(&length);
    TF_StringInit(&strings[i]);
    TF_StringCopy(&strings[i], bytes, length);
    free(bytes);
  }
  return TF_NewTensor(type, dimensions, (int)rank, data, size, free_strings, NULL);
}

static void write_tensor(const TF_Tensor *tensor) {
  int rank = TF_NumDims(tensor);
  write_u32((uint32_t)TF_TensorType(tensor));
  write_u32((uint32_t)rank);
  for (int i = 0; i < rank; ++i) write_u64((uint64_t)TF_Dim(tensor, i));
  if (TF_TensorType(tensor) != TF_STRING) {
    write_bytes(TF_TensorData(tensor), TF_TensorByteSize(tensor));
    return;
  }
  const TF_TString *strings = TF_TensorData(tensor);
  for (int64_t i = 0; i < TF_TensorElementCount(tensor); ++i)
    write_string(TF_StringGetDataPointer(&strings[i]), TF_StringGetSize(&strings[i]));
}

/* ---- The model, and a request to it ---- */

typedef struct {
  TF_Graph *graph;
  TF_Session *session;
  TF_Buffer *meta_graph;
} Model;

typedef struct {
  char *names[MAX_TENSORS];
  TF_Output places[MAX_TENSORS];
  TF_Tensor *tensors[MAX_TENSORS];
  int count;
} Tensors;

static Model load(const char *folder, const TF_Buffer *config) {
  TF_Status *status = TF_NewStatus();
  TF_SessionOptions *options = TF_NewSessionOptions();
  if (config != NULL) TF_SetConfig(options, config->data, config->length, status);
  check(status, "--config");
  Model model = {TF_NewGraph(), NULL, TF_NewBuffer()};
  const char *tags[] = {"serve"};
  model.session =
      TF_LoadSessionFromSavedModel(options, NULL, folder, tags, 1, model.graph, model.meta_graph, status);
  check(status, folder);
  TF_DeleteSessionOptions(options);
  TF_DeleteStatus(status);
  return model;
}

/* All outputs of a signature. */
static Tensors outputs_of(const Model *model, Span signature) {
  Tensors outputs = {.count = 0};
  Field field;
  while ((field = next_field(&signature)).number != 0) {
    if (field.number != SIGNATURE_OUTPUTS) continue;
    if (outputs.count == MAX_TENSORS) die("a signature has more than %d outputs", MAX_TENSORS);
    Span name = find(field.value, 1);
    size_t size = (size_t)(name.end - name.at);
    char *copy = allocate(size + 1);
    memcpy(copy, name.at, size);
    copy[size] = '\0';
    outputs.names[outputs.count] = copy;
    outputs.places[outputs.count] = place_of(model->graph, find(field.value, 2));
    outputs.tensors[outputs.count++] = NULL;
  }
  return outputs;
}

/* The inputs that a caller sends; a name that the signature does not have is reported in the status. */
static Tensors read_inputs(const Model *model, Span signature, TF_Status *status) {
  Tensors inputs = {.count = (int)read_u32()};
  if (inputs.count > MAX_TENSORS) die("more than %d inputs", MAX_TENSORS);
  for (int i = 0; i < inputs.count; ++i) {
    size_t size;
    inputs.names[i] = read_string(&size);
    inputs.tensors[i] = read_tensor();
    Span info = find_in_map(signature, SIGNATURE_INPUTS, inputs.names[i]);
    if (info.at != NULL)
      inputs.places[i] = place_of(model->graph, info);
    else if (TF_GetCode(status) == TF_OK)
      TF_SetStatus(status, TF_INVALID_ARGUMENT, "the signature has no input of this name");
  }
  return inputs;
}

static void release(Tensors *tensors) {
  for (int i = 0; i < tensors->count; ++i) {
    free(tensors->names[i]);
    if (tensors->tensors[i] != NULL) TF_DeleteTensor(tensors->tensors[i]);
    tensors->tensors[i] = NULL;
  }
}

static void write_answer(const TF_Status *status, const double *seconds, uint32_t repeats, const Tensors *outputs) {
  write_u32((uint32_t)TF_GetCode(status));
  write_string(TF_Message(status), strlen(TF_Message(status)));
  write_u32(repeats);
  write_bytes(seconds, repeats * sizeof *seconds);
  write_u64(resident_bytes());
  write_u64(peak_bytes());
  int count = TF_GetCode(status) == TF_OK ? outputs->count : 0;
  write_u32((uint32_t)count);
  for (int i = 0; i < count; ++i) {
    write_string(outputs->names[i], strlen(outputs->names[i]));
    write_tensor(outputs->tensors[i]);
  }
  /* The caller waits for it before the next request. */
  if (fflush(stdout) != 0) die("the answers cannot be written");
}

/* Runs the request that comes next as often as it asks, and answers with the last outputs. */
static void answer(const Model *model) {
  TF_Status *status = TF_NewStatus();
  size_t size;
  char *name = read_string(&size);
  Span meta_graph = {model->meta_graph->data, (const uint8_t *)model->meta_graph->data + model->meta_graph->length};
  Span signature = find_in_map(meta_graph, META_GRAPH_SIGNATURES, name);
  if (signature.at == NULL) TF_SetStatus(status, TF_NOT_FOUND, "the model has no signature of this name");
  uint32_t repeats = read_u32(), done = 0;
  double *seconds = allocate(repeats * sizeof *seconds);
  Tensors inputs = read_inputs(model, signature, status);
  Tensors outputs = outputs_of(model, signature);
  while (TF_GetCode(status) == TF_OK && done < repeats) {
    for (int i = 0; i < outputs.count; ++i)
      if (outputs.tensors[i] != NULL) TF_DeleteTensor(outputs.tensors[i]);
    double start = now();
    TF_SessionRun(model->session, NULL, inputs.places, inputs.tensors, inputs.count, outputs.places, outputs.tensors,
                  outputs.count, NULL, 0, NULL, status);
    seconds[done++] = now() - start;
  }
  write_answer(status, seconds, done, &outputs);
  release(&inputs);
  release(&outputs);
  free(seconds);
  free(name);
  TF_DeleteStatus(status);
}

static TF_Buffer *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) die("%s cannot be read", path);
  static char bytes[1 << 16];
  size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  return TF_NewBufferFromString(bytes, size);
}

static void load_operations(const char *path) {
  TF_Status *status = TF_NewStatus();
  TF_LoadLibrary(path, status);
  check(status, path);
  TF_DeleteStatus(status);
}

int main(int argc, char **argv) {
  if (argc < 2) die("usage: serve MODEL [--ops LIBRARY]... [--config FILE] [--no-xla]");
  double start = now();
  TF_Buffer *config = NULL;
  for (int i = 2; i < argc; ++i) {
    if (strcmp(argv[i], "--no-xla") == 0)
      disable_xla_compilation();
    else if (strcmp(argv[i], "--ops") == 0 && i + 1 < argc)
      load_operations(argv[++i]);
    else if (strcmp(argv[i], "--config") == 0 && i + 1 < argc)
      config = read_file(argv[++i]);
    else
      die("unknown option %s", argv[i]);
  }
  Model model = load(argv[1], config);
  write_string(TF_Version(), strlen(TF_Version()));
  write_f64(now() - start);
  if (fflush(stdout) != 0) die("the answers cannot be written");
  for (int next; (next = getchar()) != EOF;) {
    ungetc(next, stdin);
    answer(&model);
  }
  TF_Status *status = TF_NewStatus();
  TF_CloseSession(model.session, status);
  TF_DeleteSession(model.session, status);
  check(status, "closing");
  TF_DeleteStatus(status);
  TF_DeleteGraph(model.graph);
  TF_DeleteBuffer(model.meta_graph);
  if (config != NULL) TF_DeleteBuffer(config);
  return 0;
}
